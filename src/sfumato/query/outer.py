# SPDX-License-Identifier: Apache-2.0
"""SQL over private answers: plans the inner questions, and runs the outer statement over them.

Before anything is charged, the outer statement is bound to empty tables of the same columns, so
that what DuckDB refuses is refused at no cost. What fails later is never refunded.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.engines.public_rows import public_columns, public_rows
from sfumato.engines.scratch import MOST_ROWS, ROW_NUMBER, Held, Scratch, Stopped, Unbound
from sfumato.engines.stop import Patience
from sfumato.errors import InvalidSource, OuterFailed, Refused, UnsupportedSql
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import Request
from sfumato.metadata.table import Table
from sfumato.plan.aggregate import Quantiles
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.asker import Asker
from sfumato.query.choose import Planned
from sfumato.query.outer_answer import OuterAnswer, Result
from sfumato.query.outer_errors import Release, Releases
from sfumato.query.preview import planned_columns
from sfumato.query.price import Price
from sfumato.query.release import type_of
from sfumato.query.selected import candidates, declared_rows
from sfumato.query.statements import Statements
from sfumato.query.subqueries import Policy, Resolver, Step
from sfumato.query.together import ceiling
from sfumato.sql.outer import require_allowed, text_of_outer
from sfumato.sql.split import Inner as InnerQuestion
from sfumato.sql.split import Split, name_of, split
from sfumato.sql.trace import ROW, Inner, Trace, traced

# More rows than any LIMIT that is not meant to cut: groups that are not public have no number.
_ANY_NUMBER = 2**31
_DELTA_UNIT = 10**24
_AS_NOW = "{} is public, and was read as it is now."


@dataclass(frozen=True, slots=True)
class Outer:
    """The plan of SQL over the answers of private questions, ready to be charged.

    ``public`` are the public tables that it reads. ``columns`` are the names and types of its
    result, ``statement`` what DuckDB runs, with hidden columns if it was traced. ``form`` tells it
    from all other statements at all prices. ``paid`` are the requests of its questions, once they
    were answered: they are not planned again.
    """

    text: str
    notes: tuple[str, ...]
    questions: tuple[Resolver, ...]
    steps: tuple[Step, ...]
    public: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    statement: str
    trace: Trace | None
    price: Price
    form: str
    paid: list[Request] = field(default_factory=list)

    def answer(
        self, statements: Statements, scratch: Scratch, patience: Patience, key: str = ""
    ) -> Answer:
        """Returns the answer of the statement; its private questions are charged together, unless
        their answers are stored.

        ``key`` is an idempotency key of the whole statement.

        Guarantees:
            an outer statement that fails is never refunded
            a key is bound to the whole statement

        Raises:
            As ``Statements.answer_all``.
            InvalidSource, InvalidDeclaration: a public table cannot be read; nothing is charged.
            KeyUsed: the key belongs to another statement; nothing is charged.
            OuterFailed: the outer statement failed; the inner answers are paid and stored.
        """
        if key:
            statements.ledger.require_key(self._request(statements.asker, key))
        # before the charge: a file that cannot be read costs nothing
        tables = {name: _public(name, scratch.public[name]) for name in self.public}
        inner = self._inner(statements, patience) if self.questions else []
        if key and inner:
            charged = {answer.charge_id for answer in inner}
            statements.ledger.reread(self._request(statements.asker, key), charged)
        releases = Releases(inner)
        for place, (answer, release) in enumerate(zip(inner, releases.releases, strict=True)):
            tables[name_of(place)] = _held(answer, release, numbered=self.trace is not None)
        try:
            values = scratch.values(self.statement, tables, patience)
        except Stopped as failure:
            charges = tuple(answer.charge_id for answer in inner)
            raise OuterFailed(str(failure), charges) from None
        known = None if self.trace is None else self.trace.columns
        result = Result(self.columns, values, known)
        name = statements.asker.dataset.name
        return OuterAnswer(self.text, self.notes, inner, releases, result, name)

    def _inner(self, statements: Statements, patience: Patience) -> list[Answer]:
        """The answers of its questions; they are recalled if they were answered before."""
        known = statements.recall_all(self.paid) if self.paid else None
        if known is not None:
            return known
        answered = statements.answer_all(self.questions, patience)
        self.paid[:] = [asked.request() for _, asked in answered]
        return [answer for answer, _ in answered]

    def afresh(self) -> "Outer":
        """Returns a copy of the plan whose questions no other caller resolves at the same time."""
        questions = []
        for question in self.questions:
            text, parameters, share = question.statement
            questions.append(question.part(text, share, parameters))
        return replace(self, questions=tuple(questions))

    def _request(self, asker: Asker, key: str) -> Request:
        """What an idempotency key is bound to: the whole statement, at its price."""
        event = ceiling(self.price, Norm.L1, asker.dataset.relation)
        return asker.request(event, asker.names("outer", self.form, event), key)


def planned_outer(
    asked: Resolver, statements: Statements, scratch: Scratch, policy: Policy
) -> Outer | None:
    """Returns the plan of SQL over private answers, for a statement that is no single question;
    None if it is not such SQL.

    Nothing is charged. ``policy`` is that of the sub-queries and limits of the inner questions.

    Raises:
        Refused, WrongUse: a part of it is refused, or its outer statement is.
    """
    sql, parameters, price = asked.statement
    today = datetime.datetime.now(datetime.UTC).date()
    parts = split(sql, statements.asker.dataset, today, parameters)
    if parts is None:
        return None
    names = [name_of(place) for place in range(len(parts.inner))]
    questions, plans, steps = [], [], []
    for inner, share in zip(parts.inner, _shares(price, parts.inner), strict=True):
        question = asked.part(inner.text, share)
        step = question.resolve(policy)
        questions.append(question)
        # what it would cost with what is stored matters to a preview alone
        plans.append(statements.unstored_plan(step))
        steps.append(step)
    forms = [planned_columns(plan) for plan in plans]
    tables = {name: _table(columns) for name, columns in zip(names, forms, strict=True)}
    public = {name: Held(_columns_of(scratch.public[name])) for name in parts.public}
    try:
        columns = _described(parts, tables | public, scratch)
    except Refused:
        if parts.is_cut:
            # the refusal of the whole says it in the words of its text
            return None
        raise
    trace = _traced(parts, plans, tables, public, columns, scratch)
    plain = text_of_outer(parts.outer)
    whole = [plain, *(inner.text for inner in parts.inner), repr(price), str(asked.values)]
    return Outer(
        sql if isinstance(sql, str) else sql.sql("duckdb"),
        (*parts.notes, *(_AS_NOW.format(name) for name in public)),
        tuple(questions),
        tuple(steps),
        parts.public,
        columns,
        plain if trace is None else text_of_outer(trace.query),
        trace,
        price,
        canonical_json(list[Json](whole)),
    )


def _shares(price: Price, inner: Sequence[InnerQuestion]) -> list[Price]:
    """The price of each inner question: equal shares of them and the numbers that they ask first.

    Each question with open keys has an equal share of delta, and no other has one.
    """
    total = sum(1 + question.asked_first for question in inner)
    openly = sum(question.is_open for question in inner)
    shares = []
    for question in inner:
        share = price.shared(Fraction(1 + question.asked_first, total))
        delta = price.delta
        if delta is not None and openly:
            delta = Fraction(int(delta / openly * _DELTA_UNIT), _DELTA_UNIT)
            delta = delta if question.is_open else None
        share = replace(share, delta=delta)
        aggregates = question.question.raw.aggregates
        if not any(isinstance(aggregate, Quantiles) for aggregate in aggregates):
            share = replace(share, interval=False)
        shares.append(share)
    return shares


def _described(
    parts: Split, tables: Mapping[str, Held], scratch: Scratch
) -> tuple[tuple[str, str], ...]:
    """The columns of an outer statement, as DuckDB binds it to empty tables.

    Raises:
        UnsupportedSql, UnknownName: it does not, or has what is not allowed.
    """
    require_allowed(parts.outer, tables.keys())
    try:
        columns = scratch.described(text_of_outer(parts.outer), tables)
    except (Unbound, Stopped) as failure:
        raise UnsupportedSql(
            f"The SQL over the private answers is refused by DuckDB: {failure}.",
            remedy="Nothing was charged. The private answers are: "
            + "; ".join(inner.text for inner in parts.inner),
        ) from None
    taken: set[str] = set()
    unique = []
    for name, kind in columns:
        unique.append((_unique(name, taken), kind))
    return tuple(unique)


def _traced(
    parts: Split,
    plans: Sequence[Planned],
    tables: Mapping[str, Held],
    public: Mapping[str, Held],
    columns: Sequence[tuple[str, str]],
    scratch: Scratch,
) -> Trace | None:
    """The outer statement with hidden columns; None if it cannot be traced."""
    answers = {}
    for (name, table), plan in zip(tables.items(), plans, strict=True):
        raw, output = plan.question.raw, plan.question.output
        rows = _ANY_NUMBER if raw.is_open else declared_rows(raw, output)
        released = tuple(bool(column["released"]) for column in planned_columns(plan))
        names = tuple(column for column, _ in table.columns)
        answers[name] = Inner(names, released, candidates(output, rows) > 1)
    named = {name: [column for column, _ in table.columns] for name, table in public.items()}
    trace = traced(parts.outer, answers, named)
    if trace is None:
        return None
    try:
        described = scratch.described(text_of_outer(trace.query), {**_numbered(tables), **public})
    except (Unbound, Stopped):
        return None
    same = len(trace.columns) == len(columns) and [
        kind for _, kind in described[: len(columns)]
    ] == [kind for _, kind in columns]
    return trace if same else None


def _table(columns: Sequence[Mapping[str, Json]]) -> Held:
    """An empty table with the columns of an answer."""
    taken: set[str] = set()
    named = []
    for column in columns:
        # the parser strips quotes from names in some places
        plain = str(column["name"]).replace('"', "").replace("'", "") or "column"
        named.append((_unique(plain, taken), str(column["type"])))
    return Held(tuple(named))


def _columns_of(table: Table) -> tuple[tuple[str, str], ...]:
    """The names and types of the columns of a public table."""
    return tuple((column.name, type_of(column.type)) for column in public_columns(table))


def _public(name: str, table: Table) -> Held:
    """A public table with its rows.

    Raises:
        InvalidSource: it has too many rows, or cannot be read.
    """
    rows = public_rows(name, table, MOST_ROWS + 1)
    if len(rows) > MOST_ROWS:
        raise InvalidSource(
            f"The public table {name!r} has more than {MOST_ROWS:,} rows.",
            remedy="SQL over private answers reads smaller ones. Join it in a private question.",
        )
    columns = _columns_of(table)
    return Held(columns, [[row[place] for row in rows] for place in range(len(columns))])


def _unique(name: str, taken: set[str]) -> str:
    """A name that is not taken yet; DuckDB does not tell names apart by case."""
    count, new = 1, name
    while new.lower() in taken:
        count += 1
        new = f"{name}_{count}"
    taken.add(new.lower())
    return new


def _numbered(tables: Mapping[str, Held]) -> dict[str, Held]:
    """Tables with a last column of row numbers."""
    return {
        name: Held((*table.columns, (ROW, ROW_NUMBER)), table.values)
        for name, table in tables.items()
    }


def _held(answer: Answer, release: Release, *, numbered: bool) -> Held:
    """The table of an answer, with its rows in the order of their keys."""
    table = _table(answer.columns)
    places = sorted(range(len(release.order)), key=release.order.__getitem__)
    columns: list[Sequence[object]] = []
    for (_, kind), values in zip(table.columns, release.columns, strict=True):
        in_order: Sequence[object] = [values[place] for place in places]
        columns.append(list(map(_local, in_order)) if kind == "timestamp" else in_order)
    if not numbered:
        return Held(table.columns, columns)
    return Held((*table.columns, (ROW, ROW_NUMBER)), [*columns, places])


def _local(moment: object) -> str | None:
    """A moment as the outer statement reads it: without its offset from UTC."""
    if moment is None:
        return None
    return str(datetime.datetime.fromisoformat(str(moment)).replace(tzinfo=None))
