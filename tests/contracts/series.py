# SPDX-License-Identifier: Apache-2.0
"""A series that looks for the middle of a column, one noisy comparison a piece, and a worker over
given integers.

The pieces are chosen by what the earlier ones have shown: each asks on which side of a point more
rows lie.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sfumato.engines.base import Engine
from sfumato.ledger import Ledger
from sfumato.mechanisms.additive import AdditiveMechanism, laplace
from sfumato.metadata.dataset import Dataset
from sfumato.plan.show import form
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Event, Repeated
from sfumato.query.cells import Cells
from sfumato.query.curator import Curator
from sfumato.query.door import Door
from sfumato.query.pipeline import compile_plan
from sfumato.query.series import Worker
from sfumato.sql.lower import understand
from tests.contracts.people import dataset
from tests.contracts.tasks import Given, who

STEPS = 6


@dataclass(frozen=True)
class Comparison:
    """How many more rows lie below a point than not, with noise."""

    middle: int
    share: Fraction
    plan: Bounded
    kind: ClassVar[str] = "comparison"
    line: ClassVar[str] = ""
    form: ClassVar[str] = ""
    cells: ClassVar[tuple[int, ...]] = (1,)
    size: ClassVar[int] = 100

    @property
    def balance(self) -> Cells:
        return Cells(self.plan, 0, ((),))

    @property
    def noise(self) -> AdditiveMechanism:
        return laplace(self.balance.distance(Norm.L1), self.share)

    @property
    def event(self) -> Event:
        return self.noise.event(self.balance.distance(Norm.L1))

    def ready(self, declarations: Dataset) -> Bounded:
        return self.plan

    def run(self, curator: Curator) -> bytes:
        (found,) = curator.measure(self.balance, self.noise)
        return json.dumps([self.middle, found]).encode()


@dataclass(frozen=True)
class Middle:
    """The middle of the ages between 0 and 99, narrowed by half in each of ``STEPS`` pieces."""

    epsilon: Fraction = Fraction(6)
    declared: Dataset = field(default_factory=dataset, compare=False)
    kind: ClassVar[str] = "middle"
    line: ClassVar[str] = "the middle of age"
    table: ClassVar[str] = "people"

    @property
    def form(self) -> str:
        return form(self)

    @property
    def event(self) -> Repeated:
        return Repeated(self.piece(1, {}).event, STEPS)

    def piece(self, place: int, earlier: Mapping[int, bytes]) -> Comparison:
        low, high = narrowed(earlier)
        middle = (low + high) // 2
        sql = f"SELECT SUM(CASE WHEN age < {middle} THEN 1 ELSE -1 END) AS n FROM {self.table}"
        plan = compile_plan(understand(sql, self.declared).raw, self.declared, Norm.L1)
        return Comparison(middle, self.epsilon / STEPS, plan)


def narrowed(earlier: Mapping[int, bytes]) -> tuple[int, int]:
    """Between which ages the middle lies, as far as was shown."""
    low, high = 0, 100
    for body in earlier.values():
        middle, balance = json.loads(body)
        low, high = (low, middle) if balance > 0 else (middle, high)
    return low, high


def worker(ledger: Ledger, engine: Engine | None = None) -> Worker:
    """The owner, over an engine that always finds one row more below."""
    return Worker(who(), engine or Given(({(): (1,)},)), ledger, Door())
