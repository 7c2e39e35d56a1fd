# SPDX-License-Identifier: Apache-2.0
"""A curator answers what was reserved, step by step, and nothing else.

Each attack with the mutant that it catches.
"""

import copy
import operator
import os
import pickle
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import Cancelled, EngineFailed, InvalidDeclaration
from sfumato.exact.values import copied
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian
from sfumato.mechanisms.grid import grid_quantiles
from sfumato.mechanisms.masks import Masks, roster_of
from sfumato.mechanisms.selection import SelectionMechanism, exponential, permute_and_flip
from sfumato.mechanisms.shares import ShareMechanism
from sfumato.mechanisms.threshold import threshold_laplace
from sfumato.noise import SYSTEM, DiscreteGaussian, DiscreteLaplace, Integers, NegativeBinomial
from sfumato.noise.entropy import below
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import BestOf, Composed, Event
from sfumato.privacy.unit import Relation
from sfumato.query.cells import Cells, Units, WeightedLeaves
from sfumato.query.curator import Curator
from sfumato.query.reserved import Reserved, drawn
from sfumato.query.statistic import BoundedStatistic, GroupedScores, Opened
from sfumato.testing import assert_counts_follow
from tests.contracts.studies import identities, masks_of, publics, summed
from tests.contracts.tasks import adding, cells, plan_of

CANARY = 8_675_309_001
EXACT = ({(0,): (CANARY,), (1,): (CANARY + 1,)},)
AGES = "SELECT sex, SUM(age) AS n FROM people GROUP BY sex"


def holding(plan: Bounded, *events: Event, read: Callable[[], object] = lambda: EXACT) -> Curator:
    """A curator of a plan with these events reserved."""
    return Curator("charge", Reserved(Composed(events)), Opened(plan, read))


def one(plan: Bounded) -> Event:
    """A measurement of the first part at epsilon 1."""
    return adding(plan).event(plan.parts[0].distance)


def scores(plan: Bounded, epsilon: object = 1) -> SelectionMechanism:
    return exponential(cells(plan).distance(Norm.LINF), epsilon)


class Wider(Cells):
    """The same integers twice as large."""

    __slots__ = ()

    def distance(self, norm: Norm) -> Distance:
        honest = super().distance(norm)
        return replace(honest, value=2 * honest.value)


class Revealing(AdditiveMechanism):
    """Looks like a mechanism, and adds nothing."""

    __slots__ = ()

    def release(self, exact: object, drawn: object = None) -> object:
        return exact


def measures_twice(curator: Curator, plan: Bounded) -> object:
    curator.measure(cells(plan), adding(plan))
    return curator.measure(cells(plan), adding(plan))


def measures_a_wider_statistic(curator: Curator, plan: Bounded) -> object:
    return curator.measure(Wider(plan, 0, cells(plan).groups), adding(plan))


def uses_less_noise(curator: Curator, plan: Bounded) -> object:
    return curator.measure(cells(plan), adding(plan, 2))


def selects_with_a_larger_rate(curator: Curator, plan: Bounded) -> object:
    return curator.select(cells(plan), scores(plan, 2))


def claims_scores_that_move_together(curator: Curator, plan: Bounded) -> object:
    return curator.select(
        cells(plan), SelectionMechanism(scores(plan).rule, Fraction(1), monotone=True)
    )


def uses_noise_of_the_other_norm(curator: Curator, plan: Bounded) -> object:
    return curator.measure(cells(plan), gaussian(Distance(Norm.L2, Fraction(1)), Fraction(1, 2)))


def brings_its_own_mechanism(curator: Curator, plan: Bounded) -> object:
    return curator.measure(cells(plan), Revealing(adding(plan).noise))


def reads_another_plan(curator: Curator, plan: Bounded) -> object:
    return curator.measure(cells(plan_of(AGES)), adding(plan_of(AGES)))


class AnyNumber(Fraction):
    """A number that equals any other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Fraction.__hash__


def lies_about_its_scale(curator: Curator, plan: Bounded) -> object:
    noise = DiscreteLaplace(Fraction(1, 10**6))
    object.__setattr__(noise, "scale", AnyNumber(1, 10**6))
    return curator.measure(cells(plan), AdditiveMechanism(noise))


class AnyPlan(Bounded):
    """A plan that equals any other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


def wide(plan: Bounded) -> Bounded:
    """The same plan where a unit moves 1,000."""
    part = plan.parts[0]
    far = replace(part, distance=replace(part.distance, value=Fraction(1000)))
    return replace(plan, parts=(far,))


def lies_about_its_plan(curator: Curator, plan: Bounded) -> object:
    curator._opened = Opened(wide(plan), lambda: EXACT)
    lie = object.__new__(AnyPlan)
    for name in ("tracked", "norm", "refinement", "parts"):
        object.__setattr__(lie, name, getattr(plan, name))
    return curator.measure(Cells(lie, 0, cells(plan).groups), adding(plan))


def writes_into_its_plan(curator: Curator, plan: Bounded) -> object:
    far = wide(plan)
    curator._opened = Opened(copied(far), lambda: EXACT, given=far)
    object.__setattr__(far.parts[0].distance, "value", Fraction(1))
    return curator.measure(cells(far), adding(plan))


def counts_a_group_twice(curator: Curator, plan: Bounded) -> object:
    twice = cells(plan)
    object.__setattr__(twice, "groups", (*twice.groups, *twice.groups))
    return curator.measure(twice, adding(plan))


def reads_after_its_end(curator: Curator, plan: Bounded) -> object:
    curator.end()
    return curator.measure(cells(plan), adding(plan))


ATTACKS = {
    each.__name__: each
    for each in (
        measures_twice,
        measures_a_wider_statistic,
        uses_less_noise,
        selects_with_a_larger_rate,
        claims_scores_that_move_together,
        uses_noise_of_the_other_norm,
        brings_its_own_mechanism,
        reads_another_plan,
        lies_about_its_scale,
        lies_about_its_plan,
        writes_into_its_plan,
        counts_a_group_twice,
        reads_after_its_end,
    )
}


def answered(attack: Callable[[Curator, Bounded], object]) -> bool:
    """Whether a curator answers all of it."""
    plan = plan_of()
    reserved = Reserved(Composed((copied(one(plan)),)))
    curator = Curator("charge", reserved, Opened(copied(plan), lambda: EXACT, given=plan))
    try:
        attack(curator, plan)
    except EngineFailed as failure:
        assert (str(failure), failure.__context__, failure.__cause__) == (
            str(EngineFailed()),
            None,
            None,
        )
        assert curator.end()
        return False
    return True


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_call_that_is_not_the_next_step_of_the_reserved_event_is_not_answered(
    attack: str,
) -> None:
    assert not answered(ATTACKS[attack])


def takes_anything(
    self: Reserved, event: Event, *, sampled: bool = False
) -> tuple[Event, Integers | None]:
    """Every step is the next one."""
    return event, None


MUTANTS: dict[str, list[tuple[object, str, object]]] = {
    "measures_twice": [(Reserved, "take", takes_anything)],
    "measures_a_wider_statistic": [(Reserved, "take", takes_anything)],
    "uses_less_noise": [(Reserved, "take", takes_anything)],
    "selects_with_a_larger_rate": [(Reserved, "take", takes_anything)],
    "claims_scores_that_move_together": [
        (Reserved, "take", takes_anything),
        (Cells, "is_monotone", True),
    ],
    "uses_noise_of_the_other_norm": [
        (Reserved, "take", takes_anything),
        (Cells, "distance", lambda self, norm: Distance(norm, Fraction(1))),
    ],
    "brings_its_own_mechanism": [("sfumato.query.curator", "_require", lambda *_: None)],
    "reads_another_plan": [
        (Reserved, "take", takes_anything),
        (Opened, "integers", lambda self, plan: EXACT),
    ],
    "lies_about_its_scale": [("sfumato.query.reserved", "is_same", operator.eq)],
    "lies_about_its_plan": [
        (Opened, "own", lambda self, statistic: statistic),
        ("sfumato.query.statistic", "is_same", operator.eq),
    ],
    "writes_into_its_plan": [
        (Opened, "own", lambda self, statistic: statistic),
        ("sfumato.query.statistic", "is_same", lambda value, own: True),
    ],
    "counts_a_group_twice": [(Opened, "own", lambda self, statistic: statistic)],
    "reads_after_its_end": [(Curator, "end", lambda self: "")],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_curator_without_the_check_answers(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, mutant in MUTANTS[attack]:
        if isinstance(owner, str):
            monkeypatch.setattr(f"{owner}.{name}", mutant)
        else:
            monkeypatch.setattr(owner, name, mutant)
    assert answered(ATTACKS[attack])


def test_only_the_mechanisms_of_sfumato_release_anything() -> None:
    plan = plan_of()
    for call in (Curator.measure, Curator.select, Curator.quantiles, Curator.threshold):
        with pytest.raises(EngineFailed):
            call(holding(plan, one(plan)), cells(plan), Revealing(adding(plan).noise))


def test_scores_count_as_monotone_only_where_the_statistic_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = plan_of()
    claim = SelectionMechanism(scores(plan).rule, Fraction(1), monotone=True)
    event = claim.event(cells(plan).distance(Norm.LINF))
    with pytest.raises(EngineFailed):
        holding(plan, event).select(cells(plan), claim)
    monkeypatch.setattr(Cells, "is_monotone", True)
    assert holding(plan, event).select(cells(plan), claim) in (0, 1)


@dataclass(frozen=True)
class Pairs(GroupedScores):
    """Two groups of scores, of which sums move by at most 1."""

    plan: Bounded

    def distance(self, norm: Norm) -> Distance:
        return Distance(norm, Fraction(1))

    def exact(self, opened: Opened) -> list[Integers]:
        opened.integers(self.plan)
        return [np.array([0, 10**9, 3]), np.array([10**9, 0])]


def test_a_tuple_is_selected_for_one_step() -> None:
    plan = plan_of()
    sure = exponential(Distance(Norm.LINF, Fraction(1)), 1)
    event = sure.event(Distance(Norm.LINF, Fraction(1)))
    curator = holding(plan, event)
    assert curator.select_each(Pairs(plan), sure) == (1, 0)
    with pytest.raises(EngineFailed):
        curator.select_each(Pairs(plan), sure)
    others = permute_and_flip(Distance(Norm.LINF, Fraction(1)), 1)
    flipped = others.event(Distance(Norm.LINF, Fraction(1)))
    with pytest.raises(EngineFailed):
        holding(plan, flipped).select_each(Pairs(plan), others)
    with pytest.raises(EngineFailed):
        holding(plan, event).select_each(cells(plan), sure)  # type: ignore[arg-type]


def test_what_is_reserved_is_answered() -> None:
    plan = plan_of()
    noise = drawn(Composed((one(plan),)), [2])
    curator = Curator(
        "charge", Reserved(Composed((one(plan),)), noise), Opened(plan, lambda: EXACT)
    )
    assert curator.measure(cells(plan), adding(plan)) == tuple(
        exact + more for exact, more in zip((CANARY, CANARY + 1), noise[0].tolist(), strict=True)
    )
    sure = scores(plan, 10**6)
    assert holding(plan, sure.event(cells(plan).distance(Norm.LINF))).select(cells(plan), sure) == 1
    assert curator.end() == ""


def test_arrays_are_measured_as_arrays() -> None:
    plan = plan_of()

    class Many(BoundedStatistic[object]):
        def distance(self, norm: Norm) -> Distance:
            return Distance(norm, Fraction(1))

        def exact(self, opened: Opened) -> object:
            return np.arange(3)

    silent = AdditiveMechanism(DiscreteLaplace(Fraction(1, 1000)))
    found = holding(plan, silent.event(Many().distance(Norm.L1))).measure(Many(), silent)
    assert isinstance(found, np.ndarray) and found.tolist() == [0, 1, 2]


SECRET = f"the row of Mr. Secret, {CANARY}"


class Leaking(Cells):
    """A statistic whose failure quotes what it read."""

    __slots__ = ()

    def exact(self, opened: Opened) -> list[int]:
        raise ValueError(f"{SECRET}: {super().exact(opened)}")


def test_a_failure_inside_tells_nothing_and_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_of()
    curator = holding(plan, one(plan), one(plan))
    with pytest.raises(EngineFailed) as caught:
        curator.measure(Leaking(plan, 0, cells(plan).groups), adding(plan))
    told = "".join(
        traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
    )
    assert str(CANARY) not in told + caplog.text and "Secret" not in told + caplog.text
    with pytest.raises(EngineFailed):
        curator.measure(cells(plan), adding(plan))
    assert curator.end() == "engine"


def test_a_cancelled_read_is_remembered_as_such() -> None:
    def read() -> object:
        raise Cancelled(paid=True)

    plan = plan_of()
    curator = holding(plan, one(plan), read=read)
    with pytest.raises(EngineFailed):
        curator.measure(cells(plan), adding(plan))
    assert curator.end() == "cancelled"


def test_an_interrupt_inside_ends_the_run() -> None:
    def read() -> object:
        raise KeyboardInterrupt

    plan = plan_of()
    curator = holding(plan, one(plan), read=read)
    with pytest.raises(KeyboardInterrupt):
        curator.measure(cells(plan), adding(plan))
    assert curator.end() == "engine"


def interrupted_after_the_read(monkeypatch: pytest.MonkeyPatch) -> str:
    """All that a report of Ctrl-C shows, with every variable, that comes while noise is added."""

    def pressed(self: AdditiveMechanism, exact: object, drawn: object = None) -> object:
        try:
            raise ValueError(f"{SECRET}: {exact}")
        except ValueError as error:
            raise KeyboardInterrupt from error

    monkeypatch.setattr(AdditiveMechanism, "release", pressed)
    plan = plan_of()
    curator = holding(plan, one(plan))
    with pytest.raises(KeyboardInterrupt) as caught:
        curator.measure(cells(plan), adding(plan))
    assert curator.end() == "engine"
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    return "".join(report.format()) + repr(caught.value.__context__)


def test_an_interrupt_carries_nothing_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(CANARY) not in interrupted_after_the_read(monkeypatch)

    def passed_on(self: Curator, step: Callable[[], object], answers: list[object]) -> None:
        self._failed = "engine"
        answers.append(step())

    monkeypatch.setattr(Curator, "_take", passed_on)
    assert str(CANARY) in interrupted_after_the_read(monkeypatch)


def test_a_curator_that_has_ended_answers_nothing() -> None:
    plan = plan_of()
    curator = holding(plan, one(plan))
    assert curator.end() == ""
    with pytest.raises(EngineFailed):
        curator.measure(cells(plan), adding(plan))


def late(
    curator: Curator, plan: Bounded, read: threading.Event, ends: threading.Event
) -> list[object]:
    """What a thread is answered that is in a step when the run ends; ``ends`` lets its read end."""
    answers: list[object] = []

    def measured() -> None:
        with suppress(EngineFailed):
            answers.append(curator.measure(cells(plan), adding(plan)))

    worker = threading.Thread(target=measured)
    worker.start()
    assert read.wait(10)
    threading.Timer(0.05, ends.set).start()
    answers.append(curator.end())
    worker.join(10)
    return answers


def in_a_step() -> list[object]:
    plan, read, ends = plan_of(), threading.Event(), threading.Event()

    def slow() -> object:
        read.set()
        assert ends.wait(10)
        return EXACT

    return late(holding(plan, one(plan), read=slow), plan, read, ends)


def test_a_step_under_way_is_not_answered_once_the_run_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert in_a_step() == ["engine"]

    def only_marks(self: Curator) -> str:
        failed, self._failed = self._failed, self._failed or "engine"
        return failed

    monkeypatch.setattr(Curator, "end", only_marks)
    assert len(in_a_step()) == 2


def in_a_fork() -> bool:
    """Whether a forked child is answered the step that its parent takes too."""
    plan = plan_of()
    curator = holding(plan, one(plan))
    child = os.fork()
    if child == 0:
        try:
            curator.measure(cells(plan), adding(plan))
        except EngineFailed:
            os._exit(1)
        os._exit(0)
    curator.measure(cells(plan), adding(plan))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Python 3.12 warns of a fork beside threads, which other tests may have left
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_a_fork()
    monkeypatch.setattr("sfumato.query.curator.os.getpid", lambda: 1)
    assert in_a_fork()


def test_a_curator_shows_and_hands_on_nothing() -> None:
    plan = plan_of()
    curator = holding(plan, one(plan))
    curator.measure(cells(plan), adding(plan))
    assert str(CANARY) not in repr(curator)
    for hand_on in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            hand_on(curator)


# --- groups that are not public, and quantiles ---------------------------------------------------


def by_job() -> Bounded:
    """Groups that are not public; a unit is in at most three."""
    sql = "SELECT job, COUNT(*) AS n, COUNT(DISTINCT person) AS u FROM people GROUP BY job"
    return plan_of(sql, unit=sf.Unit("person", max_rows=1, max_groups=3))


def shown(keys: int) -> dict[object, int]:
    """What a curator shows with a threshold that was made for so many groups a unit."""
    plan = by_job()
    units = Units(plan, 1)
    mechanism = threshold_laplace(keys, 1, "1e-3", Relation.ADD_REMOVE)
    fine = plan.refinement
    found = (
        {("cook",): (10**6,), ("judge",): (1,)},
        {("cook",): (10**6 * fine,), ("judge",): (fine,)},
    )
    curator = holding(plan, mechanism.event(units.distance(Norm.LINF)), read=lambda: found)
    return curator.threshold(units, mechanism)


def test_a_threshold_is_for_as_many_groups_as_a_unit_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(shown(3)) == list(shown(4)) == [("cook",)]
    with pytest.raises(EngineFailed):
        shown(2)
    monkeypatch.setattr(Units, "groups", 1)
    assert list(shown(2)) == [("cook",)]


def middle(sql: str, groups: int) -> tuple[tuple[int, ...], ...]:
    """The median of each group, reserved for so many groups a unit."""
    plan = plan_of(sql)
    level = (Fraction(1, 2),)
    mechanism = grid_quantiles(Distance(Norm.LINF, Fraction(1)), groups, 10**4, level)
    leaves = WeightedLeaves(cells(plan))
    event = mechanism.event(leaves.distance(Norm.LINF), groups)
    return holding(plan, event, read=lambda: ({(0,): (40, 5), (1,): (40, 5)},)).quantiles(
        leaves, mechanism
    )


def test_quantiles_are_selected_for_the_groups_of_a_unit() -> None:
    sql = "SELECT sex, MEDIAN(age) AS m FROM people GROUP BY sex"
    assert middle(sql, 1) == ((40,), (40,))
    with pytest.raises(EngineFailed):
        middle(sql, 2)
    with pytest.raises(InvalidDeclaration):
        middle(AGES, 1)


TENTH = Fraction(1, 10)


def best_of(plan: Bounded) -> BestOf:
    """The best of about four measurements at epsilon 1."""
    return BestOf((one(plan),), Fraction(0), TENTH)


def fixed(monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    """Every number of runs is this one."""
    monkeypatch.setattr(NegativeBinomial, "sample_one", lambda self: runs)


def test_the_best_of_several_runs_is_all_that_leaves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of()
    fixed(monkeypatch, 5)
    seen: list[tuple[int, ...]] = []

    def run(place: int, inner: Curator) -> tuple[int, bytes]:
        seen.append(inner.measure(cells(plan), adding(plan)))
        return seen[-1][0], str(seen[-1]).encode()

    curator = holding(plan, best_of(plan))
    place, (score, body) = curator.best(best_of(plan), run)
    # five runs, each with noise of its own
    assert len(seen) == 5 and len(set(seen)) > 1
    assert (place, score) == (0, max(each[0] for each in seen)) and eval(body) in seen
    with pytest.raises(EngineFailed):
        curator.best(best_of(plan), run)
    assert len(seen) == 5 and curator.end()


def measures_a_second_time(place: int, inner: Curator) -> tuple[int, bytes]:
    measures_twice(inner, plan_of())
    return 0, b""


def says_no_score(place: int, inner: Curator) -> tuple[int, bytes]:
    return 0.5, b""  # type: ignore[return-value]


def hides_a_failure(place: int, inner: Curator) -> tuple[int, bytes]:
    with suppress(EngineFailed):
        measures_twice(inner, plan_of())
    return 0, b""


@pytest.mark.parametrize("run", [measures_a_second_time, says_no_score, hides_a_failure])
def test_a_run_that_fails_ends_all_and_tells_nothing(
    run: Callable[[int, Curator], tuple[int, bytes]],
) -> None:
    plan = plan_of()
    curator = holding(plan, best_of(plan))
    with pytest.raises(EngineFailed) as failure:
        curator.best(best_of(plan), run)
    assert str(failure.value) == str(EngineFailed()) and failure.value.__context__ is None
    assert curator.end()


def test_a_run_that_is_cancelled_cancels_all() -> None:
    """A failure would count towards the three that freeze an account."""

    def read() -> object:
        raise Cancelled(paid=True)

    plan = plan_of()

    def run(place: int, inner: Curator) -> tuple[int, bytes]:
        inner.measure(cells(plan), adding(plan))
        return 0, b""

    for each in (run, hides_a_failure):
        curator = holding(plan, best_of(plan), read=read)
        with pytest.raises(EngineFailed):
            curator.best(best_of(plan), each)
        assert curator.end() == "cancelled"


def test_no_curator_of_a_run_answers_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of()
    fixed(monkeypatch, 1)
    for failing in (False, True):
        kept: list[Curator] = []

        def run(
            place: int, inner: Curator, *, kept: list[Curator] = kept, failing: bool = failing
        ) -> tuple[int, bytes]:
            kept.append(inner)
            if failing:
                raise KeyboardInterrupt
            return 0, b""

        with suppress(KeyboardInterrupt):
            holding(plan, best_of(plan)).best(best_of(plan), run)
        with pytest.raises(EngineFailed):
            kept[0].measure(cells(plan), adding(plan))


def test_equal_scores_are_told_apart_by_what_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever came first: the order is of outcomes, not of runs."""
    plan = plan_of()
    made = [(7, b"a"), (7, b"c"), (7, b"b"), (3, b"z")]
    for outcomes in (made, made[::-1]):
        left = iter(outcomes)
        fixed(monkeypatch, 4)
        found = holding(plan, best_of(plan)).best(best_of(plan), lambda *_, left=left: next(left))
        assert found == (0, (7, b"c"))


def released(count: int, law: NegativeBinomial) -> list[int]:
    """How often each of three outcomes, equally likely in a run, is the best one."""
    plan = plan_of()
    event = BestOf((one(plan),), law.shape, law.stop)
    counts = [0, 0, 0]
    for _ in range(count):
        _, (score, _) = holding(plan, event).best(event, lambda *_: (below(3, SYSTEM), b""))
        counts[score] += 1
    return counts


def shares(law: dict[int, float]) -> list[float]:
    """The probability that each of three outcomes is the best of so many runs."""
    upto = [sum(mass * (best / 3) ** runs for runs, mass in law.items()) for best in range(4)]
    return [upto[best + 1] - upto[best] for best in range(3)]


def test_the_number_of_runs_is_drawn_by_the_law_of_the_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = NegativeBinomial(0, TENTH)
    series = {runs: law.pmf(runs).upper for runs in range(1, 300)}
    wrong = shares({4: 1.0})
    assert_counts_follow(released(1200, law), shares(series), notices=wrong)
    fixed(monkeypatch, 4)
    with pytest.raises(AssertionError):
        assert_counts_follow(released(1200, law), shares(series), notices=wrong)


KEYS = identities("a", "b", "c")
SHARE = ShareMechanism(DiscreteGaussian(10), 3, 1, 2, 1, roster_of(publics(KEYS)))


def sharing(plan: Bounded, mechanism: ShareMechanism = SHARE) -> Event:
    return mechanism.event(plan.parts[0].distance)


def test_a_share_leaves_masked_and_noisy() -> None:
    plan = plan_of(norm=Norm.L2)
    bodies, masks = [], masks_of(KEYS)
    for name in KEYS:
        reserved = Reserved(Composed((sharing(plan),)), [np.array([1, 2])])
        curator = Curator("charge", reserved, Opened(plan, lambda: EXACT))
        bodies.append(curator.share(cells(plan), SHARE, masks[name], 1))
        assert curator.end() == ""
    assert summed(*bodies) == [3 * CANARY + 3, 3 * (CANARY + 1) + 6]
    # alone each is a stream of random words
    for body in bodies:
        assert not set(summed(body)) & set(range(CANARY - 100, CANARY + 100))
    # noise that was not drawn ahead is drawn before the read
    order: list[str] = []
    curator = holding(plan, sharing(plan), read=lambda: order.append("read") or EXACT)
    curator.share(cells(plan), SHARE, masks_of(KEYS)["a"], 1)
    assert order == ["read"] and curator.end() == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"noise": DiscreteGaussian(9)},
        {"least": 4},
        {"colluders": 2, "least": 4},
        {"cells": 3},
        {"overlap": 2},
        {"roster": "5a" * 32},
    ],
    ids=str,
)
def test_a_share_of_other_terms_than_reserved_is_not_answered(fields: dict[str, object]) -> None:
    plan = plan_of(norm=Norm.L2)
    curator = holding(plan, sharing(plan))
    with pytest.raises(EngineFailed):
        curator.share(cells(plan), replace(SHARE, **fields), masks_of(KEYS)["a"], 1)
    assert curator.end()


def test_what_is_reserved_as_a_share_is_not_measured_and_not_masked_alone() -> None:
    plan = plan_of(norm=Norm.L2)
    alone = gaussian(plan.parts[0].distance, Fraction(1, 2))

    def measured(curator: Curator) -> object:
        return curator.measure(cells(plan), alone)

    def pretended(curator: Curator) -> object:
        masks = masks_of(KEYS)["a"]
        fewer = Masks("a", masks.roster, {"b": masks._pairs["b"]})
        return curator.share(cells(plan), SHARE, fewer, 1)

    def of_strangers(curator: Curator) -> object:
        return curator.share(cells(plan), SHARE, masks_of(identities(*KEYS))["a"], 1)

    def a_step_twice(curator: Curator) -> object:
        masks = masks_of(KEYS)["a"]
        masks.masked(1, np.zeros(2, np.int64))
        return curator.share(cells(plan), SHARE, masks, 1)

    for attack in (measured, pretended, of_strangers, a_step_twice):
        curator = holding(plan, sharing(plan))
        with pytest.raises(EngineFailed):
            attack(curator)
        assert curator.end()


def test_a_curator_that_takes_any_step_measures_what_is_a_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant of the test above."""
    monkeypatch.setattr(Reserved, "take", lambda self, event, sampled=False: (event, None))
    plan = plan_of(norm=Norm.L2)
    curator = holding(plan, sharing(plan))
    assert curator.measure(cells(plan), gaussian(plan.parts[0].distance, Fraction(1, 2)))
