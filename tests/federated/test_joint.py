# SPDX-License-Identifier: Apache-2.0
"""A task runs unchanged on sums over sites: without noise, on the integers of the pooled tables."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import EngineFailed, UnsupportedSql, WrongUse
from sfumato.federated.coordinator import added
from sfumato.federated.declaration import read_study
from sfumato.federated.joint import Exchange, JointCurator, most_integers
from sfumato.federated.question import Question, compiled
from sfumato.mechanisms.additive import gaussian
from sfumato.mechanisms.masks import FreshKey
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, Composed, PoissonSample, Repeated, Sampled
from sfumato.telemetry.keys import private_key
from tests.contracts.federation import NAMES, rows, write_study

SQL = (
    "SELECT sex, COUNT(*) AS n, SUM(dose) AS d, AVG(age) AS a, VARIANCE(age) AS v "
    "FROM patients WHERE age > 20 GROUP BY sex"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("study")
    write_study(found)
    return found


def silent(monkeypatch):
    """Noise is nothing, for this test alone."""

    def sample(self, shape, entropy=None):
        return np.zeros(shape, np.int64)

    monkeypatch.setattr(DiscreteGaussian, "sample", sample)


def declared_as(study, table):
    """A table with the declarations of the study."""
    return {"patients": sf.Table(table, columns=study.dataset.tables["patients"].columns)}


def run_alone(folder, question, tables, places=3):
    """The answers of all sites, run in turn in threads over one board of shares."""
    study = read_study(folder / "study.toml")
    keys = {name: private_key(folder / f"{name}.pem") for name in NAMES}
    run = "5a" * 32
    fresh = {name: FreshKey(name, key, bytes.fromhex(run)) for name, key in keys.items()}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    barrier, board = Barrier(places), {}

    def answer(name):
        def send(step, body):
            board.setdefault(step, {})[name] = body
            barrier.wait(20)
            return added(board[step])

        exchange = Exchange(run)
        exchange.masks = fresh[name].masks(study.site_keys, shown)
        exchange.send = send
        made = compiled(question, study, exchange)
        declared = declared_as(study, tables[name])
        with sf.connect(
            declared,
            dataset=name,
            budget=sf.Budget(100, "1e-6"),
            ledger=str(folder / f"{name}{len(question.sql)}.alone.db"),
        ) as session:
            if question.model:
                with session.open_series(made.asked) as series:
                    for _ in series:
                        pass
                    body = series.earlier[series.places]
            else:
                body = session.ask(made.asked).body
            assert session.verify().problems == ()
            return body, made

    with ThreadPoolExecutor(places) as pool:
        return list(pool.map(answer, NAMES)), board


def test_without_noise_the_integers_are_those_of_the_pooled_tables(folder, monkeypatch, tmp_path):
    silent(monkeypatch)
    tables = {name: rows(place) for place, name in enumerate(NAMES)}
    # an empty site is an answer
    tables["anne"] = tables["anne"].slice(0, 0)
    answers, _ = run_alone(folder, Question.of(SQL, "0.1"), tables)
    bodies = {body for body, _ in answers}
    assert len(bodies) == 1
    joint = answers[0][1].decode(bodies.pop(), "run")
    study = read_study(folder / "study.toml")
    pooled = declared_as(study, pa.concat_tables(tables.values()))
    with sf.connect(
        pooled, dataset="pooled", budget=sf.Budget(100, "1e-6"), ledger=str(tmp_path / "l.db")
    ) as session:
        alone = session.query(SQL, rho="0.1")
    assert joint.rows == alone.rows and len(joint.rows) == 2


def test_a_model_is_fitted_to_the_sums_of_all_sites(folder, monkeypatch, tmp_path):
    silent(monkeypatch)
    tables = {name: rows(place) for place, name in enumerate(NAMES)}
    rows_of = "SELECT age, dose, responded FROM patients"
    question = Question.of(rows_of, "0.1", ln.Additive(steps=6), "responded")
    answers, board = run_alone(folder, question, tables)
    assert len({body for body, _ in answers}) == 1 and len(board) == 7
    model = answers[0][1].decode(answers[0][0], "run")
    study = read_study(folder / "study.toml")
    pooled = declared_as(study, pa.concat_tables(tables.values()))
    with sf.connect(
        pooled, dataset="pooled", budget=sf.Budget(100, "1e-6"), ledger=str(tmp_path / "l.db")
    ) as session:
        monkeypatch.setattr(
            RoundedGaussian, "sample", lambda self, shape, entropy=None: np.zeros(shape, np.int64)
        )
        asked = ln.fit(
            session,
            ln.Additive(steps=6),
            rows_of,
            label="responded",
            # the noise that is planned for is that of a curator at two thirds of the rho
            rho=str(round(0.1 * 2 / 3, 12)),
        )
    assert np.allclose(model.scores, asked.scores, atol=1e-3)


def test_only_sums_with_gaussian_noise_are_shared(folder):
    terms = read_study(folder / "study.toml").terms
    one = Distance(Norm.L2, 4)
    added_noise = AdditiveNoise(DiscreteGaussian(30), one)
    shared = terms.shared(Composed((added_noise, Repeated(added_noise, 3))), 7)
    assert shared.events[0].noise == DiscreteGaussian(sigma_squared=300)
    assert shared.events[1].event == shared.events[0] and shared.events[0].cells == 7
    for event in (
        AdditiveNoise(DiscreteLaplace(3), Distance(Norm.L1, 1)),
        Sampled(PoissonSample("0.1"), added_noise),
    ):
        with pytest.raises(UnsupportedSql):
            terms.shared(event, 7)
    with pytest.raises(WrongUse):
        terms.mechanism(DiscreteLaplace(3), 7)


def test_a_joint_curator_measures_and_nothing_else(folder):
    study = read_study(folder / "study.toml")
    joint = JointCurator(None, study.terms, 1, Exchange("r"))
    assert joint.charge == "r"
    for refused in (
        lambda: joint.select,
        lambda: joint.sample,
        lambda: joint.measure(None, None, of=object()),
        lambda: joint.measure(None, gaussian(Distance(Norm.L2, 4), 1)),
    ):
        with pytest.raises(WrongUse):
            refused()


def test_a_task_that_measures_instead_of_sharing_is_forfeited(folder, tmp_path):
    """``measure`` for ``share``: the reserved event is a share, so nothing is released."""
    study = read_study(folder / "study.toml")
    made = compiled(Question.of(SQL, "0.1"), study)

    class Greedy:
        kind, line, form, cells, size = "study", "", "greedy", made.asked.cells, None
        event = made.asked.event

        def ready(self, declarations):
            return made.asked.inner.ready(declarations)

        def run(self, curator):
            return made.asked.inner.run(curator)

    declared = declared_as(study, rows(0))
    with sf.connect(
        declared, dataset="d", budget=sf.Budget(10, "1e-6"), ledger=str(tmp_path / "l.db")
    ) as session:
        with pytest.raises(EngineFailed):
            session.ask(Greedy())
        assert session.budget.spent


def test_how_many_integers_there_are_is_public():
    class Sized:
        cells = (3, 5)

    assert most_integers(Sized()) == 5
    for cells in ((), (3, None)):
        Sized.cells = cells
        with pytest.raises(UnsupportedSql):
            most_integers(Sized())
