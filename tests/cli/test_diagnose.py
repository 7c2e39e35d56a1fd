# SPDX-License-Identifier: Apache-2.0
"""``sfumato diagnose``: what clipping touches, charged."""

import json

from tests.contracts.shell import BY_SEX, COUNT, Shell

AGE = "SELECT AVG(age) AS age FROM people"


def test_it_shows_shares_and_is_charged(shell: Shell) -> None:
    shell.configure("upper = 99", "upper = 29")
    ran = shell.run("diagnose", AGE, "--epsilon", "1000")
    assert ran.code == 0
    # 20 of 40 people are older than 29
    assert "50.0% [47.5%, 52.5%] of the rows: age above the declared 29" in ran.out
    assert "0.0% [0.0%, 2.5%] of the rows: age below the declared 0" in ran.out
    assert "cost epsilon = 1000, charge" in ran.out
    assert "spent     epsilon 1000 of" in shell.run("budget", "--details").out


def test_its_json_has_findings_and_charges(shell: Shell) -> None:
    form = json.loads(shell.run("diagnose", BY_SEX, "--rho", "0.5", "--format", "json").out)
    assert [each["what"] for each in form["findings"]] == ["sex missing or not declared"]
    assert form["charges"][0]["cost"]["rho"] == "0.5"


def test_a_question_without_bias_is_refused(shell: Shell) -> None:
    ran = shell.run("diagnose", COUNT, "--epsilon", "1")
    assert ran.code == 1
    assert "nothing to diagnose" in ran.err
    assert "epsilon 0 of" in shell.run("budget", "--details").out


def test_it_takes_parameters(shell: Shell) -> None:
    ran = shell.run(
        "diagnose", f"{AGE} WHERE age > :low", "--epsilon", "1", "--parameter", "low=30"
    )
    assert ran.code == 0
