# SPDX-License-Identifier: Apache-2.0
"""Noisy marginals of one table as a task: counts of rows by sets of columns.

``Session.marginals`` asks it; synopses use its cubes.
"""

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

# The stored bytes: a line of JSON, then the cells of all marginals as little-endian int64.
FORMAT = 1
# The largest standard deviation of the noise; with more, a noisy cell might not fit 64 bits.
_WIDEST = 2**56
# The most characters of a task's line in the journal; each has at most four bytes.
_LINE = LONGEST_LINE // 4


@dataclass(frozen=True, slots=True)
class MarginalsTask:
    """A task that releases some marginals of one bounded table, each for the same share of the
    cost.

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
        """A line for the log: the table and the columns of each marginal, cut to the longest line."""
        cliques = "; ".join(" x ".join(clique) or "all rows" for clique in self.cliques)
        line = f"{self.table}: {cliques}"
        return "".join(sign if sign.isprintable() else "?" for sign in line)[:_LINE]

    @property
    def form(self) -> str:
        """The canonical string of all fields of the task, with the format of the stored bytes."""
        return f"{FORMAT}{form(self)}"

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The mechanism that adds noise to each marginal."""
        allowed = self.allowance
        distance = Marginal(self.plan, ()).distance(allowed.norm)
        share, *_ = allowed.shares(len(self.cliques))
        return allowed.noise(distance, share)

    @property
    def event(self) -> Event:
        """The privacy event of all marginals: that of a single one, repeated."""
        mechanism = self.mechanism
        distance = Marginal(self.plan, ()).distance(mechanism.norm)
        return Repeated(mechanism.event(distance), len(self.cliques))

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of cells of each marginal."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each marginal."""
        cube = self.plan.cube
        return [cube.shape(places) for places in cube.places(self.cliques)]

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        charge_id = "0" * 32
        return len(self._header(charge_id)) + 8 * sum(self.cells)

    def ready(self, declarations: Dataset) -> BoundedCube:
        """Returns the plan of the counted table; raises WrongUse if it was planned for other
        declarations.
        """
        if marginal_cube(declarations, self.table, self.cliques) != self.plan:
            raise WrongUse(
                "Marginals that were planned for other declarations.", remedy="Plan them anew."
            )
        return self.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the answer as bytes: the header, then the noisy cells of each marginal."""
        mechanism = self.mechanism
        marginals = []
        for clique in self.cliques:
            marginals.append(curator.measure(Marginal(self.plan, clique), mechanism))
        cells = [marginal.astype("<i8").tobytes() for marginal in marginals]
        return b"".join([self._header(curator.charge), *cells])

    def costing(self, allowed: Allowance) -> "MarginalsTask":
        """Returns a task for the same marginals at another cost."""
        return replace(self, allowance=allowed)

    def _header(self, charge: str) -> bytes:
        """The first line of the stored bytes: all facts about the answer as canonical JSON."""
        event = self.event
        cost = cost_of_steps(charge_for(account(event)), self.kind, event)
        axes: list[Json] = []
        for key in self.plan.cube.axes:
            kind = canonical(key.value.type)
            axes.append({"name": key.value.name, "type": kind})
        facts: dict[str, Json] = {
            "kind": self.kind,
            "format": FORMAT,
            "charge_id": charge,
            "dataset": self.dataset,
            "table": self.table,
            "cost": cost.to_json(),
            "protected": list[Json](self.protected),
            "bounded": list[Json](_bounding(self.plan)),
            "unit": f"1/{self.plan.refinement}",
            "axes": axes,
            "marginals": [list[Json](clique) for clique in self.cliques],
        }
        return canonical_json(facts).encode() + b"\n"


def marginals_task(
    dataset: Dataset,
    table: str,
    cliques: Sequence[Sequence[str]],
    allowed: Allowance,
) -> MarginalsTask:
    """Returns the task that releases some marginals of a table; a clique is a set of column names.

    Raises:
        UnknownName: there is no such table or axis.
        WrongUse: there are no cliques or too many, a clique is listed twice or has an axis twice,
            there are too many cells, or the cost is too small.
        MissingDeclaration: an axis is a ``Text``, or no limit bounds the rows of a unit.
    """
    plan = marginal_cube(dataset, table, cliques)
    named = tuple(map(tuple, cliques))
    if len(set(map(frozenset, named))) < len(named):
        raise WrongUse(
            "A marginal twice.",
            allowed="each set of axes once: one answer holds for every order of them",
        )
    plan.cube.places(named)
    protected = tuple(protection(dataset, plan.unit))
    task = MarginalsTask(dataset.name, table, plan, named, allowed, protected)
    if task.mechanism.noise.variance.upper > _WIDEST**2:
        raise WrongUse(
            "Noise beyond 2^56 steps.",
            remedy="Ask for fewer marginals together, or at a higher cost.",
        )
    return task


def marginal_cube(dataset: Dataset, table: str, cliques: Sequence[Sequence[str]]) -> BoundedCube:
    """Returns the bounded cube over all axes of the cliques, in the order of their declarations."""
    if not isinstance(table, str) or table not in dataset.tables:
        raise UnknownName(f"No table {shown(table)}.", allowed=", ".join(dataset.tables))
    _require_cliques(cliques)
    columns = dataset.tables[table].columns
    wanted = {name for clique in cliques for name in clique}
    unknown = [name for name in wanted if name not in columns]
    if unknown:
        first = min(unknown, key=str)
        raise UnknownName(f"There is no axis {shown(first)}.", allowed=", ".join(columns))
    listed = []
    for name, kind in columns.items():
        if name in wanted:
            listed.append(Column(name, kind))
    scan = Scan(table, columns=tuple(listed), owner=owner_of(dataset, table))
    axes = tuple(axis(Value.of(column)) for column in listed)
    return compile_cube(Cube(scan, axes), dataset)


def _require_cliques(cliques: object) -> None:
    """Raises WrongUse unless the argument is a list of cliques within the allowed number."""
    allowed = f'from 1 to {MAX_CLIQUES:,}: [("age", "sex"), ("age",)]'
    if not isinstance(cliques, list | tuple):
        raise WrongUse(f"cliques={shown(cliques)}.", allowed=allowed)
    if not 1 <= len(cliques) <= MAX_CLIQUES:
        raise WrongUse(f"{len(cliques):,} cliques.", allowed=allowed)
    for clique in cliques:
        is_list = isinstance(clique, list | tuple)
        if not is_list or not all(isinstance(name, str) for name in clique):
            raise WrongUse(
                f"A clique that is a {type(clique).__name__}.",
                allowed='names of axes: ("age", "sex")',
            )


def _bounding(plan: BoundedCube) -> list[str]:
    """Sentences on what was bounded."""
    if plan.unit is None:
        return []
    more = f"Of a unit with more than {plan.most:,} rows"
    return [f"{more} each row weighs less, the same in every marginal."]
