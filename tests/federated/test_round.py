# SPDX-License-Identifier: Apache-2.0
"""A run in any order of its messages, with losses, repetitions and deaths."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sfumato.federated.messages import Message
from sfumato.federated.round import Act, Phase, Round, agreed_places

SITES = ("a", "b", "c")
RUN = "r" * 64
END = 100.0
# What a site says when it does something.
SAID = {Act.APPROVE: "approved", Act.HOLD: "ready", Act.WITHDRAW: "withdrawn"}


def new(site, next_round=Round):
    return next_round(RUN, site, frozenset(SITES), END)


class Runs(RuleBasedStateMachine):
    """Three sites and a coordinator that delivers what it likes."""

    made = Round

    def __init__(self):
        super().__init__()
        self.rounds = {site: new(site, self.made) for site in SITES}
        self.said = []
        self.marked = set()
        self.acts = {site: [] for site in SITES}
        self.now = 0.0

    def say(self, site, kind, author=None):
        self.said.append(Message(kind, RUN, author or site, {}))

    @rule(site=st.sampled_from(SITES), permitted=st.booleans())
    def advance(self, site, permitted):
        before = self.rounds[site]
        self.rounds[site], act = before.next(self.now, permitted=permitted)
        self.acts[site].append(act)
        if act is Act.APPROVE:
            assert permitted
        if act is Act.HOLD:
            self.marked.add(site)
        if act in SAID:
            self.say(site, SAID[act])

    @precondition(lambda self: self.said)
    @rule(site=st.sampled_from(SITES), place=st.integers(0, 200))
    def deliver(self, site, place):
        """Any message that was ever sent, as often as it likes."""
        self.rounds[site] = self.rounds[site].after(self.said[place % len(self.said)])

    @rule(site=st.sampled_from(SITES), author=st.sampled_from(("a", "z", "analyst")))
    def deliver_foreign(self, site, author):
        """Messages of other runs, of strangers, and of the analyst for a site, change nothing."""
        before = self.rounds[site]
        for kind in ("approved", "ready", "failed", "answered"):
            other = Message(kind, "x" * 64 if author == "a" else RUN, author, {})
            assert before.after(other) == before

    @rule()
    def cancel(self):
        self.say("", "cancelled", "analyst")

    @rule(site=st.sampled_from(SITES))
    def refuse(self, site):
        if not self.marked & {site}:
            self.say(site, "refused")

    @rule(seconds=st.sampled_from([1.0, 60.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule(site=st.sampled_from(SITES))
    def die(self, site):
        """A site that had begun withdraws in its next life, as its key is gone."""
        self.rounds[site] = new(site, self.made)
        if site in self.marked:
            self.say(site, "withdrawn")
            self.rounds[site] = self.rounds[site].ended()

    @invariant()
    def a_site_executes_only_what_all_sites_have_held(self):
        for acts in self.acts.values():
            if Act.EXECUTE in acts:
                assert self.marked == set(SITES)

    @invariant()
    def a_run_is_executed_once(self):
        for acts in self.acts.values():
            assert acts.count(Act.EXECUTE) <= 1 and acts.count(Act.HOLD) <= 1

    @invariant()
    def a_run_that_has_ended_is_never_executed(self):
        for acts in self.acts.values():
            done = [place for place, act in enumerate(acts) if act in (Act.VOID, Act.WITHDRAW)]
            lives = [place for place, act in enumerate(acts) if act is Act.EXECUTE]
            assert not (done and lives)


TestRuns = Runs.TestCase


class Hasty(Round):
    """The mutant: it executes once two sites have held the question."""

    __slots__ = ()

    def next(self, now, *, permitted):
        if self.phase is Phase.HELD and len(self.ready) > 1:
            return self.ended(), Act.EXECUTE
        return super().next(now, permitted=permitted)


def run_through(made):
    """All sites approve, and all but one hold; the acts of the first one."""
    machine = Runs()
    machine.rounds = {site: new(site, made) for site in SITES}
    for _ in range(3):
        for site in SITES:
            if site != "c" or not machine.acts["c"]:
                machine.advance(site, permitted=True)
            for place in range(len(machine.said)):
                for other in SITES:
                    machine.deliver(other, place)
    return machine


def test_a_site_executes_only_what_all_sites_have_held():
    machine = run_through(Round)
    machine.a_site_executes_only_what_all_sites_have_held()
    assert machine.acts["a"][-1] is Act.WAIT
    hasty = run_through(Hasty)
    assert Act.EXECUTE in hasty.acts["a"] and hasty.marked < set(SITES)


def test_a_run_is_executed_once():
    machine = Runs()
    for _ in range(6):
        for site in SITES:
            machine.advance(site, permitted=True)
            for place in range(len(machine.said)):
                machine.deliver(site, place)
    for site in SITES:
        assert machine.acts[site].count(Act.EXECUTE) <= 1
    assert machine.acts["a"].count(Act.EXECUTE) == 1


def test_a_run_that_has_ended_is_never_executed():
    held = new("a")
    for kind, sites in (("approved", SITES), ("ready", SITES[:2])):
        for site in sites:
            held = held.after(Message(kind, RUN, site, {}))
    ended = held.after(Message("cancelled", RUN, "analyst", {}))
    after, act = ended.next(0, permitted=True)
    assert act is Act.VOID and after.next(0, permitted=True) == (after, Act.WAIT)
    late, act = held.next(END, permitted=True)
    assert act is Act.WITHDRAW and late.phase is Phase.ENDED
    # a site that reserves it after that does not bring it back
    last = ended.after(Message("ready", RUN, "c", {}))
    assert not last.is_held and last.next(0, permitted=True)[1] is Act.VOID


def test_what_all_have_held_is_executed_whatever_the_clock_and_the_analyst_say():
    """Else some sites would execute it, and others not."""
    held = new("a")
    for site in SITES:
        held = held.after(Message("approved", RUN, site, {}))
    held, act = held.next(0, permitted=True)
    held, act = held.next(0, permitted=True)
    assert act is Act.HOLD
    for site in SITES:
        held = held.after(Message("ready", RUN, site, {}))
    for last in (held, held.after(Message("cancelled", RUN, "analyst", {}))):
        assert last.next(END + 1, permitted=True)[1] is Act.EXECUTE
    broken = held.after(Message("withdrawn", RUN, "b", {}))
    assert broken.next(0, permitted=True)[1] is Act.VOID


def test_a_run_that_was_postponed_is_held_later():
    run = new("a")
    for site in SITES:
        run = run.after(Message("approved", RUN, site, {}))
    run, _ = run.next(0, permitted=True)
    run, act = run.next(0, permitted=True)
    assert act is Act.HOLD
    run, act = run.postponed().next(1, permitted=True)
    assert act is Act.HOLD and run.phase is Phase.HELD


def test_the_first_key_of_a_site_is_its_key():
    first = new("a").after(Message("ready", RUN, "b", {"key": "1"}))
    assert first.after(Message("ready", RUN, "b", {"key": "2"})) == first


def test_places_are_agreed_if_all_sites_have_them_alike():
    ready = {
        "a": {"begun": 3, "stored": {"1": "x", "2": "y"}},
        "b": {"begun": 2, "stored": {"1": "x"}},
        "c": {"begun": 2, "stored": {"1": "x", "2": "z"}},
    }
    assert agreed_places(ready) == (frozenset({1}), 3)
    assert agreed_places({"a": {}, "b": {}}) == (frozenset(), 0)
    assert agreed_places({"a": {"begun": "9", "stored": [1]}}) == (frozenset(), 0)
