# SPDX-License-Identifier: Apache-2.0
"""What every recipe of mining has: how it is planned, and what is stored of it."""

import json
from abc import ABC, abstractmethod
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
    """The cost that is asked for."""

    epsilon: Number | None
    rho: Number | None
    delta: Number | None

    def allowance(self, *, keys: bool, why: str) -> Allowance:
        """Returns the cost; half of a delta, or a whole one beside a rho, is for unknown keys.

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
    """A task of this room, with what a preview shows of it."""

    @abstractmethod
    def releases(self) -> list[tuple[str, str, str]]:
        """For each release its name, the 95% half-width of a count, and the people that a key
        needs.
        """


class Recipe(ABC):
    """What is counted in the rows of a SELECT."""

    __slots__ = ()
    name: ClassVar[str]

    @abstractmethod
    def planned(self, plan: BoundedRows, asked: Asked) -> MiningTask:
        """Returns the task of a recipe for some rows; reads declarations alone."""

    @classmethod
    @abstractmethod
    def found(cls, facts: Mapping[str, Any], *, recalled: bool) -> Found:
        """Returns the result of stored facts."""


def facts_of(
    task: Task,
    charge: str,
    recipe: str,
    title: str,
    levels: Sequence[Mapping[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """Returns what is stored of an answer, as JSON."""
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
    """Returns the stored bytes of an answer."""
    return json.dumps(facts, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")


def cost_of_event(event: Event) -> Cost:
    """Returns the cost of an event with its items."""
    return cost_of_steps(charge_for(account(event)), KIND, event)


# the smallest threshold is searched for: a task states its event several times
threshold = lru_cache(maxsize=256)(threshold_gaussian)


def people_needed(mechanism: ThresholdMechanism) -> str:
    """Returns how many people a key needs to be shown in half of answers, and in 95%."""
    half, sure = (mechanism.smallest_shown(chance) for chance in ("0.5", "0.95"))
    return f"{half:,} (half of the time), {sure:,} (95%)"


def find_column(plan: BoundedRows, name: object) -> int:
    """Returns the index of a column of the rows.

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
    """Returns the most values that a unit can have in some columns of its rows."""
    of_row = 0
    for place in places:
        kind = plan.rows.values[place].type
        rule = kind.tokens if isinstance(kind, Text) else None
        of_row += 1 if rule is None else rule.most
    return of_row * plan.most


def require_values(value: Value, what: str, *, text: bool) -> None:
    """Raises WrongUse, with the name of the column, if its values cannot be keys or groups."""
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
    """Raises WrongUse unless a setting is an integer from 1 to ``most``."""
    if type(count) is not int or not 1 <= count <= most:
        raise WrongUse(f"{name}={shown(count)}.", allowed=f"a whole number from 1 to {most:,}")


def declared_terms(only: Sequence[str]) -> tuple[str, ...]:
    """Returns declared terms; raises WrongUse unless they are strings, each once."""
    if isinstance(only, str) or not all(isinstance(term, str) for term in only):
        raise WrongUse(f"only={shown(only)}.", allowed='a list of terms: ["eye", "ear"]')
    if not 1 <= len(only) <= _ONLY or len(set(only)) < len(only):
        raise WrongUse("only= without terms, or with a term twice.", allowed="each term once")
    return tuple(only)


def require_tokens(kind: Text, only: Sequence[str]) -> None:
    """Raises WrongUse if a declared term is not one token of a text."""
    for term in only:
        if kind.tokens is not None and kind.tokens.split(term) != (term,):
            raise WrongUse(
                f"only={shown(term)} is not one token.",
                allowed="terms as tokens.split returns them",
            )


def _named(kind: ColumnType) -> str:
    return "an open text" if isinstance(kind, Text) else "an array"


def label_of(kind: ColumnType, code: int | str | None) -> int | str | bool | None:
    """Returns a value as JSON: a code as what it stands for."""
    if code is None or isinstance(code, str) or isinstance(kind, Text | Array):
        return code
    value = kind.decode(code)
    return value if isinstance(value, int | str) else str(value)


def label_of_key(reading: Reading, key: Key) -> tuple[int | str | bool | None, ...]:
    """Returns the labels of a key: its group, if there are groups, and its values."""
    values = reading.plan.rows.values
    head, *rest = key
    column = reading.columns[0] if reading.by is not None else reading.columns[int(head or 0)]
    labels = [label_of(values[column].type, each) for each in rest]
    if reading.by is None:
        return tuple(labels)
    return (label_of(values[reading.by].type, head), *labels)
