# SPDX-License-Identifier: Apache-2.0
"""A task whose run is given, an engine whose integers are given, and what becomes of the charge."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

from sfumato.engines.base import Exact
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.ledger import Ledger
from sfumato.ledger.spend import LEASE
from sfumato.mechanisms.additive import AdditiveMechanism, laplace
from sfumato.metadata.dataset import Dataset
from sfumato.plan.stages import Bounded
from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.add_noise import every_group
from sfumato.query.asker import Asker
from sfumato.query.cells import Cells
from sfumato.query.curator import Curator
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import understand
from tests.contracts.people import asker, dataset

BUDGET = Budget(1000, "1e-6")
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def plan_of(sql: str = BY_SEX, norm: Norm = Norm.L1, **options: object) -> Bounded:
    """The bounded plan of a question about the people."""
    declared = dataset(**options)
    return compile_plan(understand(sql, declared).raw, declared, norm)


def cells(plan: Bounded, place: int = 0) -> Cells:
    """All declared groups of a part."""
    return Cells(plan, place, tuple(every_group(plan.tracked.raw.keys)))


def adding(plan: Bounded, epsilon: object = 1) -> AdditiveMechanism:
    """Laplace noise for the first part."""
    return laplace(plan.parts[0].distance, epsilon)


@dataclass(frozen=True)
class Probe:
    """A task that reserves an event and does whatever it is told."""

    plan: Bounded
    event: Event
    does: Callable[[Curator], bytes]
    cells: tuple[int | None, ...] = ()
    size: int | None = None
    form: str = "probe"
    kind: str = "probe"
    line: str = ""

    def ready(self, declarations: Dataset) -> Bounded:
        return self.plan

    def run(self, curator: Curator) -> bytes:
        return self.does(curator)


def measuring(does: Callable[[Curator], bytes], times: int = 1, **fields: object) -> Probe:
    """A task that reserves so many measurements of the number of people by sex."""
    plan = plan_of()
    one = adding(plan).event(plan.parts[0].distance)
    return Probe(plan, Composed((one,) * times), does, **fields)


@dataclass
class Given:
    """An engine whose integers are given; what they are called for is written down."""

    exact: Exact
    reads: list[Bounded] = field(default_factory=list)
    collects_codes: bool = True

    def wait(self, patience: Patience = ENDLESS) -> None:
        pass

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass

    def statement(self, plan: Bounded) -> str:
        return ""

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        def read() -> Exact:
            self.reads.append(plan)
            return self.exact

        return read


def who() -> Asker:
    """The owner asking."""
    return asker(dataset(), BUDGET)


def opened(folder: Path, lease: timedelta = LEASE) -> Ledger:
    """A ledger with the budget."""
    ledger = Ledger.open(folder / "ledger.db", lease=lease)
    ledger.adopt(who().contract, BUDGET)
    return ledger


HALF = Fraction(1, 2)
