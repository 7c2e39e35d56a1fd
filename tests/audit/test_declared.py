# SPDX-License-Identifier: Apache-2.0
"""Everything that a file declares is kept as the task that its own command asks."""

import importlib

import pytest

import sfumato as sf
from sfumato.audit import Verdict, system
from sfumato.audit.declared import declared_tasks, graph_tasks
from sfumato.config.load import read_declarations
from sfumato.graph.triangles import TriangleLadder
from sfumato.metadata.dataset import Dataset
from sfumato.mining import group_sums, unit_keys
from sfumato.query.ticks import Ticks
from tests.cli.census_folder import CENSUS, write_folder

SYSTEM = importlib.import_module("sfumato.audit.system")
MORE = """
[models.bayes]
recipe = "NaiveBayes"
data = "SELECT age, sex FROM people"
label = "sex"
epsilon = "2"
[models.steps]
recipe = "Additive"
data = "SELECT age, sex FROM people"
label = "sex"
rho = "0.5"
steps = 3
[models.wrong]
recipe = "NaiveBayes"
data = "SELECT nothing FROM people"
label = "sex"
epsilon = "2"
[synopses.ages]
table = "people"
rho = 3
wanted = [{prefixes = "age"}]
[synthetic.rows]
table = "people"
columns = ["sex", "county"]
rho = 2
"""
CLINIC = """\
dataset = "clinic"
ledger = "ledger.db"
[budget]
epsilon = "1000000"
delta = "1e-3"
[tables.notes]
source = "notes.parquet"
unit = {column = "who", max_rows_total = 4}
columns.note = {type = "text", tokens = {}}
columns.ward = {type = "category", values = ["eye", "ear"]}
columns.day = {type = "integer", lower = 0, upper = 9}
columns.scan = {type = "array", shape = [2, 2], lower = 0, upper = 9}
[mining.words]
recipe = "Terms"
data = "SELECT note FROM notes"
text = "note"
keep = 1
rho = 1
delta = "1e-7"
[mining.ways]
recipe = "Paths"
data = "SELECT ward, day FROM notes"
item = "ward"
order = "day"
keep = 1
rho = 1
delta = "1e-7"
[mining.sets]
recipe = "Itemsets"
data = "SELECT ward FROM notes"
rho = 1
[mining.scans]
recipe = "Means"
data = "SELECT scan, ward FROM notes"
picture = "scan"
by = "ward"
rho = 1
[streams.days]
table = "notes"
time = "day"
horizon = 4
rho = 1
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(SYSTEM, "differing_statements", lambda *given: [])
    monkeypatch.setattr(SYSTEM, "NOISES", {})
    path = write_folder(tmp_path, CENSUS + MORE)
    (tmp_path / "people.csv").unlink()
    return str(path)


def tried(path, rounds=1, only=""):
    dataset = read_declarations(path).dataset
    (table,) = dataset.tables
    text = f"SELECT COUNT(*) AS n FROM {table}"
    tasks = [task for task in declared_tasks(path) if only in task.name]
    return system(dataset, [text], rounds=rounds, forms=[], tasks=tasks)


def test_each_declared_task_is_compared_without_its_source(path, tmp_path):
    tasks = {task.name: task for task in declared_tasks(path)}
    names = ["models.bayes", "models.steps", "models.wrong", "synopses.ages"]
    assert list(tasks) == [*names, "census.residents", "synthetic.rows"]
    assert tasks["models.wrong"].task is None and tasks["models.wrong"].refusal == "UnknownName"
    result = tried(path)
    assert result.verdict is Verdict.UNDECIDED and result.refused == ("models.wrong",)
    assert set(result.statements[1:]) == set(tasks) - {"models.wrong"}
    assert not (tmp_path / "ledger.db").exists()
    (tmp_path / "plain.toml").write_text(
        (tmp_path / "sfumato.toml").read_text().split("[census")[0]
    )
    assert list(declared_tasks(str(tmp_path / "plain.toml"))) == []


@pytest.mark.parametrize("name", ["models.bayes", "models.steps", "census.residents"])
def test_mutant_of_a_step_that_moves_further(name, path, monkeypatch):
    witness = importlib.import_module("sfumato.query.witness")
    honest = witness._moved
    monkeypatch.setattr(witness, "_moved", lambda *given: 1 + 3 * honest(*given))
    result = tried(path)
    assert any(name in finding for finding in result.findings)


@pytest.fixture
def clinic(path, tmp_path):
    place = tmp_path / "clinic.toml"
    place.write_text(CLINIC)
    return str(place)


def test_questions_of_mining_and_streams_are_compared(clinic):
    names = ["mining.words", "mining.ways", "mining.sets", "mining.scans", "streams.days"]
    assert [task.name for task in declared_tasks(clinic)] == names
    result = tried(clinic)
    assert result.findings == () == result.refused and list(result.statements[1:]) == names


def everybody(self, state, names, tick):
    return names == names, state


@pytest.mark.parametrize(
    ("name", "place", "function", "broken"),
    [
        # what a person adds is not cut, to so many keys or to a length
        ("mining.words", unit_keys, "_cut", lambda unit, key, hashed, keep: (unit, key)),
        ("mining.ways", unit_keys, "_cut", lambda unit, key, hashed, keep: (unit, key)),
        ("mining.scans", group_sums, "clipped", lambda vectors, *bounds: vectors),
        ("streams.days", Ticks, "_taking_part", everybody),
    ],
)
def test_mutant_of_a_person_without_a_limit(name, place, function, broken, clinic, monkeypatch):
    monkeypatch.setattr(place, function, broken)
    result = tried(clinic, rounds=3, only=name)
    assert any(name in finding for finding in result.findings)


def graph(unit, relation=sf.AddRemove):
    people = sf.Table("people.csv", unit=sf.Unit("id", max_rows_total=1, name="person"))
    ties = sf.Table("ties.csv", unit=unit, columns={"kind": sf.Category("close", "far")})
    return Dataset("made-up", {"people": people, "ties": ties}, relation)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("unit", "relation", "questions"),
    [
        (sf.Edge("a", "b"), sf.AddRemove, {"edges", "degrees", "triangles", "synthetic graph"}),
        (sf.Node("a", "b", of="people"), sf.ReplaceOne, {"edges", "degrees"}),
    ],
)
def test_all_questions_about_graphs_are_compared(unit, relation, questions):
    dataset = graph(unit, relation)
    names = [task.name for task in graph_tasks(dataset)]
    assert {name.split(": ")[1].split(",")[0] for name in names} == questions
    text = "SELECT COUNT(*) AS n FROM people"
    result = system(dataset, [text], rounds=1, forms=[], seed=3)
    assert result.findings == () and list(result.statements[1:]) == names


@pytest.mark.usefixtures("path")
def test_mutant_of_triangles_without_a_width(monkeypatch):
    honest = TriangleLadder.exact
    monkeypatch.setattr(TriangleLadder, "exact", lambda *given: (honest(*given)[0], 0))
    text = "SELECT COUNT(*) AS n FROM people"
    result = system(graph(sf.Edge("a", "b")), [text], rounds=1, forms=[], seed=3)
    assert any("ladder" in found and "triangles" in found for found in result.findings)
