# SPDX-License-Identifier: Apache-2.0
"""Plans several questions as one publication: one cost for all; shared parts are paid once.

``Session.plan`` returns a ``Publication``; its ``run`` asks the questions. The prices follow from
declarations alone, never from what is stored. So the same plan, made again after a crash, has the
same questions at the same prices, and the answered ones cost no budget.
"""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import DELTA_INCREMENTS, NOTHING, Charge, charge_for
from sfumato.errors import (
    BudgetExceeded,
    MissingDeclaration,
    SfumatoError,
    UnknownName,
    WrongUse,
    shown,
)
from sfumato.exact.rational import Number, decimal_text, positive
from sfumato.ledger.balance import Balance, increments_text
from sfumato.query.account import Account
from sfumato.query.answer import Answer
from sfumato.query.choose import Mechanism, Planned
from sfumato.query.least_worst import least_worst
from sfumato.query.left_after import left_now
from sfumato.query.preview import Preview
from sfumato.query.price import OnAverage, Price, Wish
from sfumato.query.release import Asked
from sfumato.query.reuse import is_no_noisier
from sfumato.query.together import ceiling
from sfumato.show.render import html_table, text_table

_HEADER = ("question", "pays", "column", "rows in group", "95% error")
# What the ledger counts in, and the smallest delta of a question.
_UNIT, _DELTA_UNIT = Fraction(1, 10**12), Fraction(1, DELTA_INCREMENTS)
# How often prices are lowered by a millionth if their charges, rounded up, add up to too much.
_TRIES = 8
# Every question has the same weight; no question has a size.
UNWEIGHTED: Mapping[str, Number] = MappingProxyType({})
UNSIZED: Mapping[str, int] = MappingProxyType({})
# Called after each question with its name, how many are answered, and how many there are.
Progress: TypeAlias = Callable[[str, int, int], object]


class Payer(Protocol):
    """The members of ``Session`` that a publication needs to ask its questions and pay for them."""

    @property
    def budget(self) -> Account: ...

    @property
    def query(self) -> Callable[..., Answer]: ...

    def balances(self) -> list[Balance]: ...


@dataclass(frozen=True, slots=True)
class Drafted:
    """A statement of ``Session.plan`` that is planned at a price, with its preview, before stored
    aggregates are reused.

    ``is_whole`` is true if the statement is a single charge. Otherwise it needs other charges
    (sub-queries, limits or clips that are learnt), which share its price. ``stored`` is true if the
    asker has its answer already.
    """

    preview: Preview
    asked: Asked
    is_whole: bool
    stored: bool

    @property
    def charge(self) -> Charge:
        """The cost of the statement, if no part of it is stored yet."""
        return self.asked.planned.charge

    def most(self, price: Price) -> Charge:
        """Returns the highest cost of the statement, with the charges for what it needs
        (sub-queries, limits).
        """
        if self.is_whole:
            return self.charge
        bounded = self.asked.planned.bounded
        event = ceiling(price, bounded.norm, bounded.parts[0].distance.relation)
        return charge_for(account(event))


# Drafts a statement at a price, without charging it.
Draft: TypeAlias = Callable[[str, Price], Drafted]


@dataclass(frozen=True, slots=True)
class Split:
    """The rule by which a cost is split among questions: by ``weights``, or so that the largest
    error is least.

    In the second case ``sizes`` has the group size at which errors are compared.
    """

    weights: Mapping[str, Number]
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Line:
    """One question of a publication: its price, and the charge that it pays when the questions run
    in turn.

    ``shared`` has the titles of parts that it reads from earlier questions at no cost.
    """

    name: str
    statement: str
    price: Price
    preview: Preview
    charge: Charge
    shared: tuple[str, ...]
    stored: bool

    @property
    def asked(self) -> dict[str, Any]:
        """The price of the question as keyword arguments for ``Session.query``."""
        target = self.price.target
        if target is None:
            found = {"epsilon": self.price.epsilon, "rho": self.price.rho}
            found["delta"] = self.price.delta
            return {name: value for name, value in found.items() if value is not None}
        amount: Number = f"{100 * target.amount}%" if target.relative else target.amount
        error: Wish = OnAverage(amount) if target.average else amount
        return {"error": error, "max_epsilon": self.price.most}


@dataclass(frozen=True, slots=True)
class Publication:
    """The plan of several questions that share a cost, made by ``Session.plan``; nothing is charged
    before ``run``.

    ``lines`` has the questions in the order in which they were given, ``turns`` their names in the
    order of payment.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40]}), columns={"age": sf.Integer(0, 120)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> session = sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(1),
    ...                      ledger=folder.name + "/l.db")
    >>> planned = session.plan({"size": "SELECT COUNT(*) AS n FROM people",
    ...                         "age": "SELECT AVG(age) AS a FROM people"}, epsilon=1)
    >>> planned.cost.epsilon, list(planned.run()), session.budget.spent
    (1000000000000, ['size', 'age'], '1')
    >>> session.close(); folder.cleanup()
    """

    lines: tuple[Line, ...]
    turns: tuple[str, ...]
    session: Payer = field(repr=False, compare=False)
    is_answered: Callable[[Line], bool] = field(repr=False, compare=False)

    @property
    def cost(self) -> Charge:
        """The cost of all questions, if no answer were stored, in the ledger's integer units."""
        return _sum([line.charge for line in self.lines])

    @property
    def left(self) -> int:
        """The number of questions that are not answered yet."""
        return sum(not line.stored for line in self.lines)

    def __getitem__(self, name: str) -> Line:
        """The question with this name."""
        found = {line.name: line for line in self.lines}
        if name not in found:
            raise UnknownName(f"No question {shown(name)}.", allowed=", ".join(found))
        return found[name]

    def run(self, progress: Progress | None = None) -> dict[str, Answer]:
        """Asks all questions, which charges those not stored; returns their answers by name.

        Each answer is stored at once. If the process dies, plan and run again: stored answers are
        returned at no cost, and the other questions are asked.

        Raises:
            BudgetExceeded: the account cannot pay for all open questions; nothing was charged.
            Others as ``Session.query``; earlier answers stay stored.
        """
        self._require_budget()
        answers = {}
        for done, name in enumerate(self.turns, start=1):
            line = self[name]
            with _name_in_errors(name):
                answers[name] = self.session.query(line.statement, **line.asked)
            if progress is not None:
                progress(name, done, len(self.turns))
        return {line.name: answers[line.name] for line in self.lines}

    def _require_budget(self) -> None:
        """Raises, before any charge, unless the account can pay for all open questions."""
        unpaid = [line for line in self.lines if not (line.stored or self.is_answered(line))]
        wanted = _sum([line.charge for line in unpaid])
        account = self.session.budget
        if wanted.epsilon is not None and wanted.epsilon * _UNIT <= account.left:
            return
        if wanted.rho * _UNIT <= account.left_rho:
            return
        raise BudgetExceeded(
            f"The publication costs {_charge_text(wanted)}.",
            allowed=_left_text(account),
            remedy="Plan it at a smaller cost, or with fewer questions. Nothing was charged.",
        )

    def __repr__(self) -> str:
        return "\n".join([text_table(_HEADER, self._body), *self._notes])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(line)}</li>" for line in self._notes)
        return f"{html_table(_HEADER, self._body)}<ul>{notes}</ul>"

    @property
    def _body(self) -> list[list[str]]:
        """The rows of the table."""
        return [row for line in self.lines for row in _rows(line)]

    @property
    def _notes(self) -> list[str]:
        """Lines on the shared parts and on the cost of all questions."""
        notes = [_shared_line(line) for line in self.lines if line.shared]
        last = f"{len(self.lines)} questions cost {_charge_text(self.cost)}; nothing was charged"
        if self.left < len(self.lines):
            last = f"{last}; {len(self.lines) - self.left} of them are answered already, at no cost"
        if self.left:
            due = _sum([line.charge for line in self.lines if not line.stored])
            notes += left_now(self.session.balances, due)
        return [*notes, last]


def named(questions: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Returns the statements of ``Session.plan`` by name; those of a list are named by their number
    from 1.

    Raises:
        WrongUse: there is no question, or a name or statement is not a string.

    >>> named(["SELECT 1", "SELECT 2"])
    {'1': 'SELECT 1', '2': 'SELECT 2'}
    """
    statements: dict[Any, Any] = {}
    if isinstance(questions, Mapping):
        statements = dict(questions)
    elif isinstance(questions, list | tuple):
        statements = {str(place): text for place, text in enumerate(questions, start=1)}
    if not statements or not all(
        isinstance(text, str) for pair in statements.items() for text in pair
    ):
        raise WrongUse(f"questions={shown(questions)}.", allowed='{"name": "SELECT ...", ...}')
    return statements


@contextmanager
def _name_in_errors(name: str) -> Iterator[None]:
    """Adds the name of the question to an error that the block raises."""
    try:
        yield
    except SfumatoError as refusal:
        refusal.problem = f"Question {shown(name)}: {refusal.problem}"
        raise


def planned_lines(
    statements: Mapping[str, str],
    price: Price,
    split: Split,
    draft: Draft,
) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Returns the planned questions of a publication, and their names in the order of payment.

    ``price`` is for all questions together, but a wanted error is for each of them.

    Guarantees:
        questions of a publication cost at most its price together
    """
    if price.target is not None:
        if split.weights or split.sizes:
            raise WrongUse("weights= of questions with error=.", allowed="weights= with a cost")
        return _line_up({name: (text, price) for name, text in statements.items()}, draft)
    deltas = _deltas(statements, price, draft)
    shares = _shares(statements, split, price, deltas, draft)
    factor = Fraction(1)
    for attempt in range(_TRIES):
        prices = {}
        for name, text in statements.items():
            share = min(shares[name] * factor, Fraction(1))
            with _name_in_errors(name):
                prices[name] = text, replace(price, delta=deltas[name]).shared(share)
        lines, turns = _line_up(prices, draft)
        spent = _priced_amount(_sum([line.charge for line in lines]), price) * _UNIT
        cost = price.epsilon or price.rho
        assert cost is not None, "a price without a target has an epsilon or a rho"
        if spent <= cost and (attempt or not any(line.shared for line in lines)):
            return lines, turns
        # what is shared is paid once: all prices rise until the whole is spent
        factor *= cost / spent if attempt == 0 else 1 - Fraction(1, 10**6)
    raise WrongUse("Costs that do not add up.", remedy="Plan it at a larger cost.")


def _line_up(
    prices: Mapping[str, tuple[str, Price]], draft: Draft
) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Computes what each question pays if those with the most expensive parts are asked first."""
    drafts = {}
    for name, (text, price) in prices.items():
        with _name_in_errors(name):
            drafts[name] = draft(text, price)
    turns = sorted(drafts, key=lambda name: _mean_part_cost(drafts[name]), reverse=True)
    released: dict[str, Mechanism] = {}
    lines = {}
    for name in turns:
        (text, price), drafted = prices[name], drafts[name]
        read = _reusable_parts(drafted, released)
        charge = _charge_without(drafted.asked.planned, read) if read else drafted.most(price)
        parts = drafted.asked.planned.parts
        titles = tuple(parts[place].aggregate.title for place in read)
        lines[name] = Line(name, text, price, drafted.preview, charge, titles, drafted.stored)
        released |= _released_parts(drafted, read)
    return tuple(lines[name] for name in prices), tuple(turns)


def _reusable_parts(drafted: Drafted, released: Mapping[str, Mechanism]) -> list[int]:
    """The indices of the parts that an earlier question releases with no more noise than wanted."""
    if not drafted.is_whole:
        return []
    asked = drafted.asked
    readable = []
    for place, (key, wanted) in enumerate(zip(asked.parts, asked.planned.mechanisms, strict=True)):
        if key in released and is_no_noisier(released[key], wanted):
            readable.append(place)
    return readable


def _released_parts(drafted: Drafted, read: Sequence[int]) -> dict[str, Mechanism]:
    """The mechanisms of the parts that a question releases and others can reuse, by part key."""
    planned = drafted.asked.planned
    # rows of grouping sets are sums of parts, and a question of several charges may end early
    if not planned.stores_parts or not drafted.is_whole:
        return {}
    mechanisms = {}
    for place, key in enumerate(drafted.asked.parts):
        if key and place not in read:
            mechanisms[key] = planned.mechanisms[place]
    return mechanisms


def _charge_without(planned: Planned, read: Sequence[int]) -> Charge:
    """The charge of a question without the parts at the indices ``read``."""
    places = [place for place in range(len(planned.mechanisms)) if place not in read]
    return planned.only(places).charge if places else NOTHING


def _mean_part_cost(drafted: Drafted) -> Fraction:
    """The average cost of a part of a question: questions with expensive parts are asked first."""
    charge = drafted.charge
    amount = charge.rho if charge.epsilon is None else charge.epsilon
    return Fraction(amount, len(drafted.asked.planned.mechanisms))


def _shares(
    statements: Mapping[str, str],
    split: Split,
    price: Price,
    deltas: Mapping[str, Fraction | None],
    draft: Draft,
) -> dict[str, Fraction]:
    """The share of each question in the cost, by its weight (1 by default) or by ``sizes``."""
    weights = split.weights
    if split.sizes:
        if weights:
            raise WrongUse("Both weights= and sizes=.", allowed="one of them")

        def foreseen(name: str, asked: Price) -> Preview:
            with _name_in_errors(name):
                return draft(statements[name], replace(asked, delta=deltas[name])).preview

        return least_worst(statements, split.sizes, price, foreseen)
    if not isinstance(weights, Mapping):
        raise WrongUse(f"weights={shown(weights)}.", allowed='{"name": 2, ...}')
    if not weights.keys() <= statements.keys():
        # names that are handed in by mistake may be values of the data
        raise UnknownName("weights= of a question that is not asked.", allowed="names of questions")
    each = {name: positive("weights", weights.get(name, 1)) for name in statements}
    whole = sum(each.values())
    return {name: weight / whole for name, weight in each.items()}


def _deltas(
    statements: Mapping[str, str], price: Price, draft: Draft
) -> dict[str, Fraction | None]:
    """The delta of each question: those whose groups are not public share it equally."""
    without = replace(price, delta=None)
    needing = []
    for name, text in statements.items():
        with _name_in_errors(name):
            needing += [name] * _needs_delta(text, without, draft)
    if price.delta is None or not needing:
        if price.delta is not None:
            raise WrongUse("delta= of questions that spend none.", remedy="Leave it out.")
        return dict.fromkeys(statements)
    share = price.delta / len(needing) // _DELTA_UNIT * _DELTA_UNIT
    return {name: share if name in needing else None for name in statements}


def _needs_delta(text: str, price: Price, draft: Draft) -> bool:
    """Whether a question cannot be planned without a delta; other errors are raised later."""
    try:
        draft(text, price)
    except MissingDeclaration:
        return True
    return False


def _priced_amount(charge: Charge, price: Price) -> int:
    """The part of a charge that the price is stated in: its epsilon or its rho."""
    if price.epsilon is None:
        return charge.rho
    assert charge.epsilon is not None, "Laplace noise has an epsilon"
    return charge.epsilon


def _sum(charges: Sequence[Charge]) -> Charge:
    """The sum of some charges."""
    total = NOTHING
    for charge in charges:
        total += charge
    return total


def _rows(line: Line) -> list[list[str]]:
    """The table rows of a question, one for each column; the first has its name and its cost."""
    found: list[list[str]] = []
    for column, rows, error in line.preview.errors_in_words:
        first = [line.name, "stored" if line.stored else _charge_text(line.charge)]
        found.append([*(["", ""] if found else first), column, rows, error])
    return found


def _shared_line(line: Line) -> str:
    """A line on the parts that a question reuses from others."""
    return f"{line.name}: {', '.join(line.shared)} read from a question before it, at no cost"


def _left_text(account: Account) -> str:
    """What an account has left, as text."""
    left = f"epsilon up to {decimal_text(account.left)}"
    return f"{left}, rho up to {decimal_text(account.left_rho)}" if account.left_rho else left


def _charge_text(charge: Charge) -> str:
    """A charge as text."""
    if charge == NOTHING:
        return "nothing"
    spent = f"epsilon {increments_text(charge.epsilon)}"
    if charge.epsilon is None:
        spent = f"rho {increments_text(charge.rho)}"
    if not charge.delta:
        return spent
    return f"{spent}, delta {float(charge.delta * _DELTA_UNIT):.3g}"
