# SPDX-License-Identifier: Apache-2.0
"""Rows and samples of them through the door: what is answered, charged, refused, and attacked."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.accounting.account import account
from sfumato.engines.reference import Reference
from sfumato.errors import EngineFailed, WrongUse
from sfumato.mechanisms.additive import AdditiveMechanism, laplace
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.show import form
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import (
    Composed,
    Design,
    Event,
    FixedSample,
    PoissonSample,
    Repeated,
    Sampled,
)
from sfumato.query.curator import Curator, Sample
from sfumato.query.pipeline import compile_rows
from sfumato.query.reserved import Reserved
from sfumato.query.session import Session
from sfumato.query.statistic import Opened
from sfumato.query.unit_sums import UnitSums
from sfumato.testing import assert_at_most
from tests.contracts.people import dataset, session

UNIT = sf.Unit("person", max_rows_total=1)
HALF = PoissonSample(Fraction(1, 2))
# with which clipped sums of 100 have noise with a chance below 1e-20
EXACTLY = 10_000


def plan_of(declared: Dataset) -> BoundedRows:
    """The age of each person, and whether they smoke."""
    columns = tuple(
        Column(name, declared.tables["people"].columns[name]) for name in ("age", "smoker")
    )
    scan = Scan("people", columns=columns, owner=owner_of(declared, "people"))
    return compile_rows(RowList(scan, tuple(map(Value.of, columns))), declared)


@dataclass(frozen=True)
class Ages:
    """The clipped sums of samples, one after the other."""

    plan: BoundedRows
    epsilon: Fraction
    design: Design = HALF
    times: int = 1
    kind: str = "ages"
    line: str = ""
    size: int = 10_000

    @property
    def sums(self) -> UnitSums:
        return UnitSums(self.plan, 100, Norm.L1)

    @property
    def noise(self) -> AdditiveMechanism:
        return laplace(self.sums.distance(Norm.L1), self.epsilon)

    @property
    def event(self) -> Event:
        return Repeated(
            Sampled(self.design, self.noise.event(self.sums.distance(Norm.L1))), self.times
        )

    @property
    def cells(self) -> tuple[int, ...]:
        return (2,) * self.times

    @property
    def form(self) -> str:
        return form(self)

    def ready(self, declarations: Dataset) -> BoundedRows:
        return self.plan

    def run(self, curator: Curator) -> bytes:
        found = [
            curator.measure(self.sums, self.noise, of=curator.sample(self.design))
            for _ in range(self.times)
        ]
        return repr(found).encode()


def opened(folder: Path, **options: object) -> Session:
    return session(folder, unit=UNIT, **options)


def sums(stored: object) -> list[tuple[int, int]]:
    return eval(stored.body)


def test_a_task_measures_samples_and_is_charged_for_sampled_events(tmp_path: Path) -> None:
    with opened(tmp_path) as here:
        task = Ages(plan_of(here.dataset), Fraction(1, 10))
        (item,) = here.price(task).to_json()["items"]
        assert item["mechanism"] == "discrete Laplace, on a sample of the units"
        assert item["parameter"] == "scale 1000, rate 1/2" and item["sensitivity"] == "L1 100 steps"
        assert (
            account(task.event).epsilon
            < account(Composed((task.noise.event(task.sums.distance(Norm.L1)),))).epsilon
        )
        stored = here.ask(task)
        assert here.ask(task).body == stored.body
        assert float(here.budget.spent) == pytest.approx(float(here.price(task).epsilon), rel=1e-9)


def test_each_sample_is_drawn_anew_of_units(tmp_path: Path) -> None:
    with opened(tmp_path) as here:
        task = Ages(plan_of(here.dataset), Fraction(EXACTLY), times=60)
        found = sums(here.ask(task))
    # 40 people, two of each age from 20 to 39, a quarter of them smokers
    # of 60 samples two are expected to agree, and twenty with a probability below 1e-17
    assert len(set(found)) > 40
    whole = sum(range(20, 40)) * 2
    assert all(0 <= ages <= whole and 0 <= smokers <= 10 for ages, smokers in found)
    # each of 10 smokers is in a sample with probability 1/2
    drawn = sum(smokers for _, smokers in found)
    assert_at_most(drawn, 600, 0.5, notices=0.77)
    assert_at_most(600 - drawn, 600, 0.5, notices=0.77)


def test_a_fixed_sample_has_its_size(tmp_path: Path) -> None:
    with opened(tmp_path, relation=sf.ReplaceOne) as here:
        task = Ages(plan_of(here.dataset), Fraction(EXACTLY), FixedSample(40, 40))
        assert sums(here.ask(task)) == [(sum(range(20, 40)) * 2, 10)]
        # a population that is not the data's is no error: of 80 places 40 are nobody's
        half = Ages(plan_of(here.dataset), Fraction(EXACTLY), FixedSample(80, 80))
        assert sums(here.ask(half)) == sums(here.ask(task))


def test_all_rows_may_be_measured_without_a_sample(tmp_path: Path) -> None:
    class Whole(Ages):
        @property
        def event(self) -> Event:
            return Composed((self.noise.event(self.sums.distance(Norm.L1)),))

        def run(self, curator: Curator) -> bytes:
            return repr([curator.measure(self.sums, self.noise)]).encode()

    with opened(tmp_path) as here:
        assert sums(here.ask(Whole(plan_of(here.dataset), Fraction(EXACTLY)))) == [
            (sum(range(20, 40)) * 2, 10)
        ]


# --- attacks -------------------------------------------------------------------------------------


def of_all_units(task: Ages, curator: Curator) -> object:
    curator.sample(task.design)
    return curator.measure(task.sums, task.noise)


def of_a_larger_sample(task: Ages, curator: Curator) -> object:
    return curator.measure(task.sums, task.noise, of=curator.sample(PoissonSample(Fraction(3, 4))))


def of_the_same_sample_again(task: Ages, curator: Curator) -> object:
    sample = curator.sample(task.design)
    curator.measure(task.sums, task.noise, of=sample)
    return curator.measure(task.sums, task.noise, of=sample)


def of_the_earlier_sample(task: Ages, curator: Curator) -> object:
    sample = curator.sample(task.design)
    curator.measure(task.sums, task.noise, of=sample)
    curator.sample(task.design)
    return curator.measure(task.sums, task.noise, of=sample)


def of_a_sample_of_its_own(task: Ages, curator: Curator) -> object:
    curator.sample(task.design)
    return curator.measure(task.sums, task.noise, of=Sample())


ATTACKS = (
    of_all_units,
    of_a_larger_sample,
    of_the_same_sample_again,
    of_the_earlier_sample,
    of_a_sample_of_its_own,
)


def takes_anything(self: Reserved, event: Event, *, sampled: bool = False) -> tuple[Event, None]:
    """Every step is the next one."""
    return event, None


MUTANTS: dict[str, list[tuple[object, str, object]]] = {
    "of_all_units": [(Reserved, "take", takes_anything)],
    "of_a_larger_sample": [
        (Reserved, "enter", lambda self, design: design),
        (Reserved, "take", takes_anything),
    ],
    "of_the_same_sample_again": [(Reserved, "take", takes_anything)],
    "of_the_earlier_sample": [(Curator, "_opened_for", lambda self, of: self._opened)],
    "of_a_sample_of_its_own": [(Curator, "_opened_for", lambda self, of: self._opened)],
}


def holding(declared: Dataset, times: int = 2) -> tuple[Ages, Curator]:
    task = Ages(plan_of(declared), Fraction(1), times=times)
    rows = [{"person": f"p{place}", "age": "30", "smoker": True} for place in range(9)]
    read = Opened(task.plan, rows=Reference({"people": rows}).rows(task.plan, "key"))
    return task, Curator("charge", Reserved(task.event), read)


def answered(attack: Callable[[Ages, Curator], object], declared: Dataset) -> bool:
    task, curator = holding(declared, 1 if attack is of_the_same_sample_again else 2)
    try:
        attack(task, curator)
    except EngineFailed as failure:
        assert (str(failure), failure.__context__) == (str(EngineFailed()), None)
        assert curator.end()
        return False
    return True


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_not_reserved_of_a_sample_is_not_answered(
    attack: Callable[[Ages, Curator], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = dataset(unit=UNIT)
    assert not answered(attack, declared)
    for owner, name, mutant in MUTANTS[attack.__name__]:
        monkeypatch.setattr(owner, name, mutant)
    assert answered(attack, declared)


def test_a_sample_for_the_other_relation_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as here:
        task = Ages(plan_of(here.dataset), Fraction(1), FixedSample(20, 40))
        with pytest.raises(sf.SfumatoError):
            here.price(task)
        # an accountant that does not look is not enough
        monkeypatch.setattr(Reserved, "enter", lambda self, design: design)
        curator = holding(here.dataset)[1]
        with pytest.raises(EngineFailed):
            curator.sample(task.design)


def test_rows_of_other_declarations_are_refused_free(tmp_path: Path) -> None:
    with opened(tmp_path) as here:
        plan = plan_of(here.dataset)
        for forged in (replace(plan, neighbours=sf.ReplaceOne), replace(plan, unit=None)):
            with pytest.raises(WrongUse):
                here.ask(Ages(forged, Fraction(1), FixedSample(20, 40) if forged.unit else HALF))
        assert here.budget.spent == "0"


def test_a_sample_says_nothing_and_is_gone_at_the_end() -> None:
    task, curator = holding(dataset(unit=UNIT))
    sample = curator.sample(HALF)
    assert not hasattr(sample, "__dict__") and [*sample.__slots__] == []
    for hand_on in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            hand_on(curator)
    assert curator.end() == ""
    with pytest.raises(EngineFailed):
        curator.measure(task.sums, task.noise, of=sample)
    assert curator._sample is None
