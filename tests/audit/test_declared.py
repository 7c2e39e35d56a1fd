# SPDX-License-Identifier: Apache-2.0
"""Everything that a file declares is kept as the task that its own command asks."""

import importlib

import pytest

from sfumato.audit import Verdict, system
from sfumato.audit.declared import declared_tasks
from sfumato.config.load import read_declarations
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


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(SYSTEM, "differing_statements", lambda *given: [])
    monkeypatch.setattr(SYSTEM, "NOISES", {})
    path = write_folder(tmp_path, CENSUS + MORE)
    (tmp_path / "people.csv").unlink()
    return str(path)


def tried(path):
    dataset = read_declarations(path).dataset
    text = "SELECT COUNT(*) AS n FROM people"
    return system(dataset, [text], rounds=1, forms=[], tasks=list(declared_tasks(path)))


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
