# SPDX-License-Identifier: Apache-2.0
"""A site believes nothing that it has not compiled, and begins no run twice."""

import time
from types import SimpleNamespace

import pytest

from sfumato.errors import StudyFailed, StudyRefused
from sfumato.federated.joint import JointSeries
from sfumato.federated.messages import ANALYST, Message, run_of
from sfumato.federated.question import Question, compiled
from sfumato.federated.round import Phase
from sfumato.federated.site import Site
from sfumato.federated.study import Study
from tests.contracts.federation import NAMES, write_study
from tests.contracts.federation_world import BEGAN, Book, Life, study_of

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.fixture
def site(tmp_path):
    """A site whose messages are kept."""
    write_study(tmp_path)
    with Site(tmp_path / "anne.toml") as found:
        found.said = []

        def post(message, within=60):
            found.said.append((message.kind, dict(message.body)))

        found._wire.post = post
        yield found


def proposal(site, **changed):
    made = compiled(Question.of(BY_SEX, "0.1"), site.study)
    body = {
        "study": site.study.terms.study,
        "roster": site.study.terms.roster,
        "question": Question.of(BY_SEX, "0.1").to_json(),
        "form": made.form_hash,
        "event": made.event_hash,
        "sites": list(NAMES),
        "attempt": "1",
        "until": int(time.time()) + 60,
    } | changed
    return Message("proposed", run_of(body), ANALYST, body)


def taken(site):
    return site.session._ledger.balance("anne").taken.rho


def advanced(site, message):
    """What a site does with a proposal that all others approve and hold."""
    site._hear(message, str)
    site._advance(message.run, str)
    for name in NAMES:
        site._hear(Message("approved", message.run, name, {}), str)
    site._advance(message.run, str)
    return [kind for kind, _ in site.said]


def test_a_site_holds_what_all_have_approved(site):
    message = proposal(site)
    assert advanced(site, message) == ["approved", "ready"]
    assert taken(site) > 0
    site._hear(Message("cancelled", message.run, ANALYST, {}), str)
    site._advance(message.run, str)
    assert taken(site) == 0 and site.rounds[message.run].phase is Phase.ENDED


@pytest.mark.parametrize(
    "changed",
    [
        # another price, another form, another roster than is told
        {"event": "00"},
        {"form": "00"},
        {"roster": "00"},
        {"study": "00"},
        {"question": Question.of(BY_SEX, "0.2").to_json()},
        {"question": {"sql": BY_SEX}},
        {"question": Question.of("SELECT MEDIAN(age) FROM patients", "0.1").to_json()},
        {"question": {"sql": BY_SEX, "rho": "0.1", "label": None, "model": "{"}},
        {"question": {"sql": BY_SEX, "rho": "0.1", "label": None, "model": "[]"}},
        {"question": {"sql": BY_SEX, "rho": "much", "label": None, "model": ""}},
        {"question": {"sql": BY_SEX, "rho": "0.1", "label": 3, "model": ""}},
        {"sites": ["anne", "northgate"]},
        {"sites": ["anne", "northgate", "nobody"]},
    ],
    ids=str,
)
def test_a_site_executes_only_what_it_has_compiled_itself(site, changed):
    message = proposal(site, **changed)
    site._hear(message, str)
    assert [kind for kind, _ in site.said] == ["refused"]
    assert site.rounds[message.run].phase is Phase.ENDED and taken(site) == 0


def test_a_site_that_believes_a_proposal_answers_another_price(site, monkeypatch):
    """The mutant of the test above."""
    monkeypatch.setattr(
        Site,
        "_own",
        lambda self, body, sites, exchange: compiled(
            Question.from_json(body["question"]), self.study, exchange
        ),
    )
    message = proposal(site, event="00")
    assert advanced(site, message) == ["approved", "ready"]


def test_late_and_foreign_proposals_are_not_heard(site):
    for changed in (
        {"until": int(time.time()) - 1},
        {"until": "soon"},
        {"sites": ["northgate", "riverside", "westend"]},
        {"sites": "anne"},
    ):
        site._hear(proposal(site, **changed), str)
    assert site.said == [] and site.rounds == {}


def reborn(site):
    """The next life of a site, which hears all messages again."""
    later = Site.__new__(Site)
    for name, value in vars(site).items():
        setattr(later, name, value)
    later._rounds, later._work, later.said = {}, {}, []
    later._wire.post = lambda message, within=60: later.said.append((message.kind, {}))
    return later


def test_a_run_is_begun_once_also_after_a_crash(site, tmp_path):
    message = proposal(site)
    assert advanced(site, message) == ["approved", "ready"]
    later = reborn(site)
    later._hear(message, str)
    later._advance(message.run, str)
    assert later.said == [("withdrawn", {})]
    # it has said so: the life after that has nothing to say
    last = reborn(site)
    last._hear(message, str)
    assert last.said == [] and last.rounds[message.run].phase is Phase.ENDED


def test_the_others_hear_of_a_crash_also_when_approvals_are_over(site, monkeypatch):
    message = proposal(site)
    assert advanced(site, message) == ["approved", "ready"]
    later = reborn(site)
    over = time.time() + 10**6
    monkeypatch.setattr("sfumato.federated.site.time.time", lambda: over)
    later._hear(message, str)
    assert later.said == [("withdrawn", {})]


@pytest.mark.parametrize(("stored", "said"), [((1, 2), "ready"), ((1, 2, 3), "answered")])
def test_a_site_answers_alone_only_if_it_has_the_last_piece(site, monkeypatch, stored, said):
    """Without it, sites that lost different pieces would each answer with another one."""
    message = proposal(site)
    site._hear(message, str)
    work = site._work[message.run]
    earlier = dict.fromkeys(stored, b"piece")
    series = SimpleNamespace(places=3, left=0, earlier=earlier, close=lambda: None)
    hold = SimpleNamespace(charge="", open=lambda: series, close=lambda: None)
    work.asked = SimpleNamespace(asked=JointSeries.__new__(JointSeries))
    monkeypatch.setattr(site, "_session", SimpleNamespace(hold=lambda joint: hold))
    site._hold(message.run, str)
    assert [kind for kind, _ in site.said] == [said]
    monkeypatch.undo()


def test_a_question_that_is_being_answered_is_held_after_that(site):
    first, second = proposal(site), proposal(site, attempt="2")
    assert advanced(site, first) == ["approved", "ready"]
    paid = taken(site)
    assert advanced(site, second) == ["approved", "ready", "approved"]
    assert site.rounds[second.run].phase is Phase.APPROVED and taken(site) == paid
    site._hear(Message("withdrawn", first.run, "northgate", {}), str)
    site._advance(first.run, str)
    site._advance(second.run, str)
    assert site.said[-1][0] == "ready" and taken(site) == paid


def test_a_question_that_a_site_has_answered_is_not_charged(site):
    first, second = proposal(site), proposal(site, attempt="2")
    site._hear(first, str)
    site._hear(Message("answered", first.run, "northgate", {"answer": "e30="}), str)
    advanced(site, second)
    assert site.said[-1] == ("answered", {"answer": "e30="}) and taken(site) == 0


def test_a_finished_run_is_not_withdrawn_in_a_later_life(site):
    message = proposal(site)
    assert advanced(site, message) == ["approved", "ready"]
    site._answer(message.run, b"{}")
    later = reborn(site)
    later._hear(message, str)
    assert later.said == []
    assert later.rounds[message.run].phase is Phase.ENDED


def test_a_ready_site_shows_its_key_and_nothing_of_its_data(site):
    advanced(site, proposal(site))
    _, body = site.said[-1]
    assert set(body) == {"key", "signature"}


def test_a_refusal_of_the_ledger_says_nothing_of_what_is_left(tmp_path):
    write_study(tmp_path, budget='[budget]\nepsilon = "0.01"\ndelta = "1e-6"\n')
    with Site(tmp_path / "anne.toml") as poor:
        said = []
        poor._wire.post = lambda message, within=60: said.append((message.kind, message.body))
        poor.said = said
        advanced(poor, proposal(poor))
        assert said[-1] == ("refused", {"why": "anne refuses."})


def broken_off(folder, patch):
    """A model of four pieces; one site has stored the second, one has lost it, one not begun it."""
    write_study(folder)
    world = Life(patch, *study_of(folder), folder, places=4)
    for name, stored, begun in zip(NAMES, ((1, 2), (1,), (1,)), (2, 2, 1), strict=True):
        book = world.books[name]
        book.state, book.paid, book.left = "suspended", 1, 4 - begun
        book.earlier = dict.fromkeys(stored, b"8 bytes.")
    return world


def drawn(world):
    """The places that each site has drawn."""
    return [[place for _, place in book.drawn] for book in world.books.values()]


def test_what_is_lost_at_one_site_is_skipped_at_all(tmp_path, monkeypatch):
    world = broken_off(tmp_path, monkeypatch)
    assert world.ask() == 111
    assert drawn(world) == [[3, 4]] * 3
    assert [book.paid for book in world.books.values()] == [1, 1, 1]
    world.stop()


def test_a_site_that_skips_nothing_draws_what_the_others_do_not(tmp_path, monkeypatch):
    """The mutant of the test above."""
    world = broken_off(tmp_path, monkeypatch)
    monkeypatch.setattr(Book, "skip", lambda book, places: None)
    with pytest.raises(StudyFailed):
        world.ask()
    assert drawn(world) == [[3], [3], [2]]
    world.stop()


@pytest.mark.parametrize("places", [1, 3])
def test_wherever_a_site_dies_a_question_gets_one_answer(tmp_path, places):
    """A model is paid once; a query that had begun is paid again, and what was refused was free."""
    write_study(tmp_path)
    declared, keys = study_of(tmp_path)
    fatal = events = 1
    while fatal <= events:
        with pytest.MonkeyPatch.context() as patch:
            world = Life(patch, declared, keys, tmp_path / str(fatal), places=places)
            world.mortal, world.fatal_request = "anne", fatal
            answers, failures = [], 0
            while not answers:
                before = [book.paid for book in world.books.values()]
                try:
                    answers.append(world.ask())
                except StudyRefused:
                    assert before == [book.paid for book in world.books.values()]
                except StudyFailed:
                    failures += 1
                assert failures < 3 and world.now < BEGAN + 200
            world.analyst = Study(declared, keys["analyst"])
            assert world.ask() == answers[0] == 111
            for book in world.books.values():
                assert 1 <= book.paid <= (1 if places > 1 else 1 + failures)
                steps = [place if places > 1 else (run, place) for run, place in book.drawn]
                assert len(set(steps)) == len(steps)
            events = world.requests
            world.stop()
        fatal += 1
    assert events > 10
