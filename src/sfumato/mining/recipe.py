# SPDX-License-Identifier: Apache-2.0
"""What every recipe of mining has: how it is planned, and what is stored of it."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import charge_for
from sfumato.errors import MissingDeclaration, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.mechanisms.threshold import ThresholdMechanism, threshold_gaussian
from sfumato.metadata.column import Array, ColumnType, Text
from sfumato.mining.found import Found
from sfumato.mining.unit_keys import MOST_VALUES, Key, Reading
from sfumato.plan.rows import BoundedRows
from sfumato.plan.value import Value
from sfumato.privacy.event import Event
from sfumato.query.allowance import Allowance, price_of
from sfumato.query.cost import Cost, cost_of_steps
from sfumato.query.task import Task

KIND = "mining"
# The format of the stored bytes.
FORMAT = 1
# Of the cost, so much counts the people of each group, or all people.
TOTALS = 20
# The most declared terms.
_ONLY = 100_000


@dataclass(frozen=True, slots=True)
class Asked:
    """The cost that a call of ``mine`` states: its arguments ``epsilon``, ``rho`` and ``delta``."""

    epsilon: Number | None
    rho: Number | None
    delta: Number | None

    def allowance(self, *, keys: bool, why: str) -> Allowance:
        """Returns the cost that the task may spend. If unknown keys are shown (``keys``), half of a
        delta pays for them, or all of one that stands beside a rho. ``why`` begins the refusal if
        there is none.

        Raises:
            MissingDeclaration: unknown keys are to be shown, and there is no delta.
        """
        if keys and self.delta is None:
            raise MissingDeclaration(
                f"No delta: {why}, and a value that one person has is shown with some chance.",
                allowed="epsilon= with delta=, or rho= with delta=",
                remedy='delta="1e-9"',
            )
        return price_of(keys=keys, epsilon=self.epsilon, rho=self.rho, delta=self.delta)


class MiningTask(Task, ABC):
    """The base class of the tasks of ``mine``; it adds the rows that a preview shows."""

    @abstractmethod
    def releases(self) -> list[tuple[str, str, str]]:
        """Returns the rows of the preview, one for each release: its name, the 95% half-width of a
        count, and how many people a key needs to be shown.
        """


class Recipe(ABC):
    """The base class of the recipes of ``mine``: what is counted in the rows of a SELECT."""

    __slots__ = ()
    name: ClassVar[str]

    @abstractmethod
    def planned(self, plan: BoundedRows, asked: Asked) -> MiningTask:
        """Returns the task that answers the recipe over some bounded rows, at the cost ``asked``;
        reads no data.
        """

    @classmethod
    @abstractmethod
    def found(cls, facts: Mapping[str, Any], *, recalled: bool) -> Found:
        """Returns the answer for the user from its stored JSON; ``recalled`` is set if it was
        stored before.
        """


def facts_of(
    task: Task,
    charge: str,
    recipe: str,
    title: str,
    levels: Sequence[Mapping[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """Returns the JSON that is stored of an answer of ``mine``; ``levels`` has its noisy counts."""
    return {
        "kind": KIND,
        "format": FORMAT,
        "recipe": recipe,
        "title": title,
        "charge_id": charge,
        "cost": cost_of_event(task.event).to_json(),
        "levels": list(levels),
        **more,
    }


def body_of(facts: Mapping[str, Any]) -> bytes:
    """Returns the stored JSON of an answer, encoded as bytes."""
    return json.dumps(facts, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")


def cost_of_event(event: Event) -> Cost:
    """Returns the cost of an event with its items."""
    return cost_of_steps(charge_for(account(event)), KIND, event)


# the smallest threshold is searched for: a task states its event several times
threshold = lru_cache(maxsize=256)(threshold_gaussian)


def people_needed(mechanism: ThresholdMechanism) -> str:
    """Returns a text on how many people a key needs to pass the threshold with probability 1/2, and
    with 95%.
    """
    half, sure = (mechanism.smallest_shown(chance) for chance in ("0.5", "0.95"))
    return f"{half:,} (half of the time), {sure:,} (95%)"


def find_column(plan: BoundedRows, name: object) -> int:
    """Returns the index of a column of a SELECT by its name, in any case if that is unique.

    Raises:
        WrongUse: there is no such column.
    """
    names = [value.name for value in plan.rows.values]
    if isinstance(name, str) and name in names:
        return names.index(name)
    lowered = [each.lower() for each in names]
    if isinstance(name, str) and lowered.count(name.lower()) == 1:
        return lowered.index(name.lower())
    raise WrongUse(f"No column {shown(name)} in the SELECT.", allowed=", ".join(names))


def most_values(plan: BoundedRows, places: Iterable[int]) -> int:
    """Returns the largest number of values (tokens, for a text) that one unit can have in the
    columns at ``places``, over all of its rows.
    """
    of_row = 0
    for place in places:
        kind = plan.rows.values[place].type
        rule = kind.tokens if isinstance(kind, Text) else None
        of_row += 1 if rule is None else rule.most
    return of_row * plan.most


def require_values(value: Value, what: str, *, text: bool) -> None:
    """Raises WrongUse unless a column can be read as keys or groups: declared values, at most
    1,000, or a text if ``text``. ``what`` names the argument.
    """
    kind = value.type
    if isinstance(kind, Text) and text:
        return
    if isinstance(kind, Text | Array):
        raise WrongUse(
            f"{what} {shown(value.name)} is {_named(kind)}.",
            allowed="a column with declared values",
            remedy="Declare it as sf.Category, or compute one in SQL: CASE WHEN ... END.",
        )
    if kind.size > MOST_VALUES:
        raise WrongUse(
            f"{what} {shown(value.name)} has {kind.size:,} values.",
            allowed=f"at most {MOST_VALUES:,}",
            remedy="Bin it in SQL: FLOOR(age / 10) AS decade.",
        )


def require_count(name: str, count: object, most: int) -> None:
    """Raises WrongUse unless the argument ``name`` is an integer from 1 to ``most``."""
    if type(count) is not int or not 1 <= count <= most:
        raise WrongUse(f"{name}={shown(count)}.", allowed=f"a whole number from 1 to {most:,}")


def declared_terms(only: Sequence[str]) -> tuple[str, ...]:
    """Returns ``only`` as a tuple; raises WrongUse unless it has strings, each once."""
    is_list = isinstance(only, Sequence) and not isinstance(only, str)
    if not is_list or not all(isinstance(term, str) for term in only):
        raise WrongUse(f"only={shown(only)}.", allowed='a list of terms: ["eye", "ear"]')
    if not 1 <= len(only) <= _ONLY:
        raise WrongUse(f"only= with {len(only):,} terms.", allowed=f"1 to {_ONLY:,}")
    if repeated := [term for term, count in Counter(only).items() if count > 1]:
        raise WrongUse(f"only= has {shown(repeated[0])} twice.", allowed="each term once")
    return tuple(only)


def require_tokens(kind: Text, only: Sequence[str]) -> None:
    """Raises WrongUse if one of the terms ``only`` is not a single token of a text column."""
    for term in only:
        tokens = (term,) if kind.tokens is None else kind.tokens.split(term)
        if tokens != (term,):
            named = ", ".join(map(shown, tokens[:5]))
            raise WrongUse(
                f"only={shown(term)} is not one token.",
                allowed="terms as tokens.split returns them",
                remedy=f"only=[{named}]" if tokens else "It has no token: leave it out.",
            )


def _named(kind: ColumnType) -> str:
    return "an open text" if isinstance(kind, Text) else "an array"


def label_of(kind: ColumnType, code: int | str | None) -> int | str | bool | None:
    """Returns the value of a code as JSON; text tokens and None are unchanged."""
    if code is None or isinstance(code, str) or isinstance(kind, Text | Array):
        return code
    value = kind.decode(code)
    return value if isinstance(value, int | str) else str(value)


def label_of_key(reading: Reading, key: Key) -> tuple[int | str | bool | None, ...]:
    """Returns the values of a key as JSON: its group, if there are groups, then the values that it
    consists of.
    """
    values = reading.plan.rows.values
    head, *rest = key
    column = reading.columns[0] if reading.by is not None else reading.columns[int(head or 0)]
    labels = [label_of(values[column].type, each) for each in rest]
    if reading.by is None:
        return tuple(labels)
    return (label_of(values[reading.by].type, head), *labels)
