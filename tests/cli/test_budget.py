# SPDX-License-Identifier: Apache-2.0
"""``sfumato budget``: the account, exact."""

import json

from tests.contracts.shell import COUNT, Shell


def test_a_tenth_ten_times_is_shown_as_one(shell: Shell) -> None:
    for index in range(10):
        shell.run("query", f"{COUNT} WHERE age > {index}", "--epsilon", "0.1")
    assert "spent     epsilon 1 of 1000000 (pure gate)" in shell.run("budget").out


def test_json_holds_every_number_as_a_decimal(shell: Shell) -> None:
    shell.run("query", COUNT, "--rho", "0.25")
    form = json.loads(shell.run("budget", "--format", "json").out)
    assert form["limit"] == {"epsilon": "1000000", "delta": "0.000001"}
    assert form["spent"] == {"epsilon": "unbounded", "rho": "0.25"}
    assert form["reserved"] == {"epsilon": "0", "rho": "0"}
    assert float(form["left"]["rho"]) == float(form["gates"]["zcdp"]) - 0.25


def test_it_needs_a_file(shell: Shell) -> None:
    assert shell.run("budget", "-c", "none.toml").code == 2
