# SPDX-License-Identifier: Apache-2.0
"""``sfumato preview``: free, from the declarations."""

import json

from tests.contracts.shell import BY_SEX, COUNT, Shell


def test_it_shows_cost_error_and_words_and_charges_nothing(shell: Shell) -> None:
    ran = shell.run("preview", COUNT, "--epsilon", "0.5")
    assert ran.code == 0
    assert "would cost epsilon = 0.5; nothing was charged" in ran.out
    assert "Protected: each row is one unit" in ran.out
    assert "spent     epsilon 0 of" in shell.run("budget", "--details").out


def test_its_json_has_cost_errors_and_statement(shell: Shell) -> None:
    form = json.loads(shell.run("preview", BY_SEX, "--rho", "0.5", "--format", "json").out)
    assert set(form) == {"cost", "errors", "statement"}
    assert form["cost"]["rho"] == "0.5"
    # sigma^2 = 1: P(|X| <= 2) = 0.99, P(|X| <= 1) = 0.88
    assert form["errors"] == [{"column": "n", "rows": None, "half_width": 2}]
    assert "GROUP BY k0" in form["statement"]


def test_the_statement_is_shown_on_request_only(shell: Shell) -> None:
    assert 'FROM "people"' not in shell.run("preview", COUNT, "--epsilon", "1").out
    assert 'FROM "people"' in shell.run("preview", COUNT, "--epsilon", "1", "--statement").out


def test_an_error_on_average_costs_less_than_one_in_every_cell(shell: Shell) -> None:
    cap = ("--error", "5", "--max-epsilon", "10", "--format", "json")
    costs = [
        json.loads(shell.run("preview", BY_SEX, *cap, *more).out)["cost"]["rho"]
        for more in ((), ("--on-average",))
    ]
    assert float(costs[1]) < float(costs[0])


def test_it_refuses_what_query_refuses(shell: Shell) -> None:
    assert shell.run("preview", "SELECT * FROM people", "--epsilon", "1").code == 1
    assert shell.run("preview", COUNT).code == 2
