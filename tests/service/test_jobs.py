# SPDX-License-Identifier: Apache-2.0
"""Jobs: bounded for a person, seen at multiples of the quantum, stopped at the end."""

import threading
import time

import pytest

import sfumato as sf
from sfumato.errors import Cancelled, EngineFailed
from sfumato.service.ended import Ended
from sfumato.service.jobs import Jobs, JobState, Turns
from sfumato.service.refusals import NotVisible, Stopping, TooMany


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def fail(_: sf.Stop) -> int:
    raise Ended(EngineFailed(), charged=True)


@pytest.mark.parametrize(("work", "end"), [(lambda _: 7, JobState.DONE), (fail, JobState.FAILED)])
def test_an_end_is_seen_at_a_multiple_of_the_quantum_only(work: object, end: JobState) -> None:
    clock, go = Clock(), threading.Event()
    jobs = Jobs(waiting=2, quantum=0.5, clock=clock)

    def run(stop: sf.Stop) -> int:
        assert go.wait(10)
        return work(stop)  # type: ignore[operator,no-any-return]

    job = jobs.admit("ann", run)
    clock.now = 100.6
    assert job.state in (JobState.WAITING, JobState.RUNNING)
    go.set()
    job.ended.exception(10)
    # it ended at 100.6: seen from 101 on, success and failure alike
    assert job.visible_at == 101.0
    clock.now = 100.99
    assert job.state is JobState.RUNNING
    clock.now = 101.0
    assert job.state is end
    jobs.drain(1)


def ended(jobs: Jobs, clock: Clock, moment: float) -> None:
    """A question of ann's ends at this moment."""
    go = threading.Event()
    job = jobs.admit("ann", lambda _: go.wait(10))
    clock.now = moment
    go.set()
    job.ended.result(10)
    while jobs._under_way:
        time.sleep(0.001)


def room(jobs: Jobs) -> bool:
    """Whether ann may ask another question."""
    try:
        jobs.admit("ann", lambda _: 1).ended.result(10)
    except TooMany:
        return False
    return True


def test_an_end_makes_no_room_before_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    jobs = Jobs(waiting=1, quantum=0.5, clock=clock)
    ended(jobs, clock, 100.6)
    for clock.now in (100.6, 100.99):
        assert not room(jobs)
    clock.now = 101.0
    assert room(jobs)
    # the mutant: a question that has ended is no longer counted
    with monkeypatch.context() as patched:
        patched.setattr(Jobs, "_count", lambda self, person: len(self._under_way.get(person, ())))
        clock.now = 102.0
        ended(jobs, clock, 102.1)
        assert room(jobs)
    jobs.drain(1)


def test_what_is_read_beside_a_question_waits_for_a_multiple() -> None:
    clock = Clock()
    jobs = Jobs(waiting=8, quantum=0.5, clock=clock)
    assert jobs.seconds_to_read("ann") == 0
    go = threading.Event()
    job = jobs.admit("ann", lambda _: go.wait(10))
    clock.now = 100.2
    under_way = jobs.seconds_to_read("ann"), jobs.seconds_to_read("bob")
    go.set()
    job.ended.result(10)
    while jobs._under_way:
        time.sleep(0.001)
    # the same before and after its end
    assert (jobs.seconds_to_read("ann"), 0.0) == under_way
    assert under_way[0] == pytest.approx(0.3)
    clock.now = 100.5
    assert jobs.seconds_to_read("ann") == 0 and jobs._ending == {}
    jobs.drain(1)


def test_without_a_quantum_an_end_is_seen_at_once() -> None:
    jobs = Jobs(waiting=1, quantum=0)
    job = jobs.admit("ann", lambda _: 7)
    assert job.ended.result(10) == 7 and job.state is JobState.DONE
    jobs.drain(1)


def test_a_person_has_a_bounded_number_of_questions_under_way() -> None:
    go, jobs = threading.Event(), Jobs(waiting=2, quantum=0)
    running = [jobs.admit("ann", lambda _: go.wait(10)) for _ in range(2)]
    with pytest.raises(TooMany):
        jobs.admit("ann", lambda _: True)
    other = jobs.admit("bob", lambda _: True)
    assert other.ended.result(10)
    go.set()
    assert all(job.ended.result(10) for job in running)
    jobs.drain(5)
    assert jobs._under_way == {}


def test_a_job_is_found_by_its_person_alone() -> None:
    jobs = Jobs(waiting=1, quantum=0)
    job = jobs.admit("ann", lambda _: 1)
    job.ended.result(10)
    with pytest.raises(NotVisible):
        jobs.find("ann", job.id)
    jobs.show(job)
    assert jobs.find("ann", job.id) is job
    for person, name in (("bob", job.id), ("ann", "nothing")):
        with pytest.raises(NotVisible):
            jobs.find(person, name)
    jobs.drain(1)


def test_old_jobs_are_forgotten() -> None:
    jobs = Jobs(waiting=200, quantum=0)
    made = [jobs.admit("ann", lambda _: 1) for _ in range(150)]
    for job in made:
        jobs.show(job)
    assert jobs.find("ann", made[-1].id) is made[-1]
    with pytest.raises(NotVisible):
        jobs.find("ann", made[0].id)
    jobs.drain(5)


def test_the_end_of_the_service_stops_what_does_not_end() -> None:
    jobs = Jobs(waiting=2, quantum=0)

    def wait(stop: sf.Stop) -> int:
        assert stop.wait(10)
        raise Ended(Cancelled(paid=True), charged=True)

    job = jobs.admit("ann", wait)
    jobs.drain(0.05)
    assert job.state is JobState.STOPPED
    with pytest.raises(Stopping):
        jobs.admit("ann", lambda _: 1)


def test_an_error_keeps_no_frames() -> None:
    jobs = Jobs(waiting=1, quantum=0)
    error = jobs.admit("ann", fail).ended.exception(10)
    assert error is not None and error.__traceback__ is None and error.__context__ is None
    jobs.drain(1)


def test_few_questions_begin_at_a_time() -> None:
    # the clock stands still, so none of them ends to count as beginning
    turns, inside, seen, lock = Turns(2, lambda: 0.0), [0], [0], threading.Lock()

    def work() -> None:
        with turns:
            with lock:
                inside[0] += 1
                seen[0] = max(seen[0], inside[0])
            time.sleep(0.002)
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (inside, seen) == ([0], [2])


def test_slow_questions_hold_up_no_other() -> None:
    turns, go = Turns(2), threading.Event()
    entered: list[int] = []

    def work(number: int) -> None:
        with turns:
            entered.append(number)
            go.wait(20)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    ends = time.monotonic() + 20
    while len(entered) < 6 and time.monotonic() < ends:
        time.sleep(0.01)
    assert len(entered) == 6
    go.set()
    for thread in threads:
        thread.join(20)
