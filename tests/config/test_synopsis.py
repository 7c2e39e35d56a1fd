# SPDX-License-Identifier: Apache-2.0
"""Synopses that a file declares: their workloads and costs, and what is refused."""

from pathlib import Path

import pytest

from sfumato.config.load import read_declarations
from sfumato.config.synopsis import read_synopsis
from sfumato.errors import WrongUse
from sfumato.synopsis import Worst, cells, marginals, plan, queries, ranges
from tests.contracts.shell import Shell

DECLARED = """
[synopses.ages]
table = "people"
epsilon = 1
strategy = "identity"
wanted = [{prefixes = "age"}]
"""


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    opened = Shell(tmp_path, capsys)
    opened.configure("[tables.people]", f"{DECLARED}\n[tables.people]")
    return opened


def test_an_entry_is_a_product_and_all_are_added(shell):
    wanted = (
        '[{ranges = "age", cells = ["sex"], weight = "0.5"}, {queries = ["SELECT 1"]}, '
        '{marginals = ["age", "born"], up_to = 1}]'
    )
    shell.configure('[{prefixes = "age"}]', wanted)
    found = read_synopsis("sfumato.toml", None)
    expected = (
        "0.5" * (ranges("age") * cells("sex"))
        + queries(["SELECT 1"])
        + marginals(["age", "born"], up_to=1)
    )
    assert found.wanted == expected
    assert found.strategy == "identity"


def test_several_tables_are_refused_by_name(shell):
    shell.configure('table = "people"\nepsilon', 'table = ["people", "homes"]\nepsilon')
    data = read_declarations("sfumato.toml").dataset
    with pytest.raises(WrongUse, match="Several tables in one charge: 'people', 'homes'"):
        read_synopsis("sfumato.toml", "ages").planned(data, {})


def test_a_cost_that_is_given_replaces_that_of_the_file(shell):
    found = read_synopsis(Path("sfumato.toml"), "ages")
    data = read_declarations("sfumato.toml").dataset
    stated = found.planned(data, {"rho": None})
    assert float(stated.allowance.amount) == 1
    given = found.planned(data, {"worst": "20", "max_rho": "1", "rho": None})
    expected = plan(data, "people", found.wanted, error=Worst(20), max_rho=1)
    assert given.allowance == expected.allowance


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ('"age"', "is not a list"),
        ("[]", "is empty"),
        ("[3]", "tables of TOML"),
        ("[{weight = 2}]", "tables of TOML"),
        ('[{range = "age"}]', "tables of TOML"),
        ('[{ranges = "age", cells = "age"}]', "twice"),
        ('[{marginals = ["age"], up_to = 0}]', "up_to"),
        ("[{queries = []}]", "a list of statements"),
        ('[{cells = "age", weight = -1}]', "weight"),
        ("[{cells = 3}]", "a string, or a list"),
        ("[{cells = []}]", "without queries"),
        ("[{marginals = 3}]", "a string, or a list"),
        ('[{cells = "age", weight = [1]}]', "weight"),
    ],
)
def test_a_workload_that_means_nothing_is_refused(shell, wanted, said):
    shell.configure('[{prefixes = "age"}]', wanted)
    ran = shell.run("synopsis", "plan", "ages")
    assert ran.code == 2
    assert said in ran.err


def test_unknown_and_missing_keys_are_named(shell):
    shell.configure('strategy = "identity"', 'plan = "identity"')
    assert "synopses.ages: unknown key 'plan'" in shell.run("synopsis", "plan", "ages").err
    shell.configure('plan = "identity"', "")
    shell.configure('wanted = [{prefixes = "age"}]', "")
    assert "synopses.ages: wanted is missing" in shell.run("synopsis", "plan", "ages").err
