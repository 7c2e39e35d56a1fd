# SPDX-License-Identifier: Apache-2.0
"""Noisy marginals of one table as a task: the second kind of question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import charge_for
from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import LONGEST_LINE
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import MAX_CLIQUES, BoundedCube, Cube, axis
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.show import canonical, form
from sfumato.plan.value import Value
from sfumato.privacy.event import Event, Json, Repeated
from sfumato.query.allowance import Allowance
from sfumato.query.cost import cost_of_steps
from sfumato.query.curator import Curator
from sfumato.query.explain import protection
from sfumato.query.marginal import Marginal
from sfumato.query.pipeline import compile_cube

# Of the stored bytes: a line of JSON, then the cells of all marginals as little-endian int64.
FORMAT = 1
# Noise is wider where a sum might leave 64 bits.
_WIDEST = 2**56
# Characters of its line in the journal, each of at most four bytes.
_LINE = LONGEST_LINE // 4


@dataclass(frozen=True, slots=True)
class MarginalsTask:
    """Some marginals of one bounded table, each for the same share of what is allowed.

    Guarantees:
        marginals that differ in anything have different forms
    """

    dataset: str
    table: str
    plan: BoundedCube
    cliques: tuple[tuple[str, ...], ...]
    allowance: Allowance
    protected: tuple[str, ...]

    kind: ClassVar[str] = "marginals"

    @property
    def line(self) -> str:
        """The table and the columns of each marginal, cut off where they are many."""
        cliques = "; ".join(" x ".join(each) or "all rows" for each in self.cliques)
        return "".join(sign if sign.isprintable() else "?" for sign in f"{self.table}: {cliques}")[
            :_LINE
        ]

    @property
    def form(self) -> str:
        """Every field, and the format of the bytes."""
        return f"{FORMAT}{form(self)}"

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise of each marginal."""
        allowed = self.allowance
        distance = Marginal(self.plan, ()).distance(allowed.norm)
        return allowed.noise(distance, allowed.shares(len(self.cliques))[0])

    @property
    def event(self) -> Event:
        """The same for each marginal."""
        mechanism = self.mechanism
        return Repeated(
            mechanism.event(Marginal(self.plan, ()).distance(mechanism.norm)), len(self.cliques)
        )

    @property
    def cells(self) -> tuple[int, ...]:
        """The cells of each marginal."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each marginal."""
        return [self.plan.cube.shape(each) for each in self.plan.cube.places(self.cliques)]

    @property
    def size(self) -> int:
        """Known to the byte."""
        return len(self._header("0" * 32)) + 8 * sum(self.cells)

    def ready(self, declarations: Dataset) -> BoundedCube:
        """The cube, if it is what these declarations say."""
        if marginal_cube(declarations, self.table, self.cliques) != self.plan:
            raise WrongUse(
                "Marginals that were planned for other declarations.", remedy="Plan them anew."
            )
        return self.plan

    def run(self, curator: Curator) -> bytes:
        """Each marginal once."""
        mechanism = self.mechanism
        found = [curator.measure(Marginal(self.plan, each), mechanism) for each in self.cliques]
        return b"".join(
            [self._header(curator.charge), *(each.astype("<i8").tobytes() for each in found)]
        )

    def costing(self, allowed: Allowance) -> "MarginalsTask":
        """The same marginals for another cost."""
        return replace(self, allowance=allowed)

    def _header(self, charge: str) -> bytes:
        facts: dict[str, Json] = {
            "kind": self.kind,
            "format": FORMAT,
            "charge_id": charge,
            "dataset": self.dataset,
            "table": self.table,
            "cost": cost_of_steps(charge_for(account(self.event)), self.kind, self.event).to_json(),
            "protected": list[Json](self.protected),
            "bounded": list[Json](_bounding(self.plan)),
            "unit": f"1/{self.plan.refinement}",
            "axes": [
                {"name": key.value.name, "type": canonical(key.value.type)}
                for key in self.plan.cube.axes
            ],
            "marginals": [list[Json](each) for each in self.cliques],
        }
        return canonical_json(facts).encode() + b"\n"


def marginals_task(
    dataset: Dataset, table: str, cliques: Sequence[Sequence[str]], allowed: Allowance
) -> MarginalsTask:
    """The task of some marginals of a table.

    Raises:
        UnknownName: no such table or axis.
        WrongUse: no cliques, too many, one twice, an axis twice in one, too many cells; too little allowed.
        MissingDeclaration: an axis that is a Text; nothing says how many rows a unit may have in all.
    """
    plan = marginal_cube(dataset, table, cliques)
    named = tuple(map(tuple, cliques))
    if len(set(map(frozenset, named))) < len(named):
        raise WrongUse(
            "A marginal twice.",
            allowed="each set of axes once: one answer holds for every order of them",
        )
    plan.cube.places(named)
    task = MarginalsTask(
        dataset.name, table, plan, named, allowed, tuple(protection(dataset, plan.unit))
    )
    if task.mechanism.noise.variance.upper > _WIDEST**2:
        raise WrongUse(
            "Noise beyond 2^56 steps.",
            remedy="Ask for fewer marginals together, or at a higher cost.",
        )
    return task


def marginal_cube(dataset: Dataset, table: str, cliques: Sequence[Sequence[str]]) -> BoundedCube:
    """The bounded cube of all axes that the cliques name, in the order of the declarations."""
    if not isinstance(table, str) or table not in dataset.tables:
        raise UnknownName(f"No table {shown(table)}.", allowed=", ".join(dataset.tables))
    _require_cliques(cliques)
    columns = dataset.tables[table].columns
    wanted = {name for clique in cliques for name in clique}
    unknown = [name for name in wanted if name not in columns]
    if unknown:
        raise UnknownName(
            f"There is no axis {shown(min(unknown, key=str))}.", allowed=", ".join(columns)
        )
    listed = tuple(Column(name, kind) for name, kind in columns.items() if name in wanted)
    scan = Scan(table, columns=listed, owner=owner_of(dataset, table))
    return compile_cube(Cube(scan, tuple(axis(Value.of(each)) for each in listed)), dataset)


def _require_cliques(cliques: object) -> None:
    if not isinstance(cliques, list | tuple) or not 1 <= len(cliques) <= MAX_CLIQUES:
        given = (
            f"{len(cliques):,} cliques"
            if isinstance(cliques, list | tuple)
            else f"cliques={shown(cliques)}"
        )
        raise WrongUse(
            f"{given}.", allowed=f'from 1 to {MAX_CLIQUES:,}: [("age", "sex"), ("age",)]'
        )
    for each in cliques:
        if not isinstance(each, list | tuple) or not all(isinstance(name, str) for name in each):
            raise WrongUse(
                f"A clique that is a {type(each).__name__}.",
                allowed='names of axes: ("age", "sex")',
            )


def _bounding(plan: BoundedCube) -> list[str]:
    """What was bounded, in words."""
    if plan.unit is None:
        return []
    return [
        f"Of a unit with more than {plan.most:,} rows each row weighs less, the same in every marginal."
    ]
