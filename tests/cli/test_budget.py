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


def test_many_limits_come_from_a_file(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    (shell.folder / "limits.csv").write_text(
        "purpose,analyst,epsilon,delta\nresearch,,2,\nresearch,ann,0.5,0.000001\nother,,,\n"
    )
    ran = shell.run("budget", "--allocate", "limits.csv", "--reason", "a new year")
    assert (ran.code, ran.out) == (0, "3 of 3 accounts have another limit now\n")
    (shell.folder / "limits.toml").write_text(
        '[[account]]\npurpose = "research"\nepsilon = "2"\n[[account]]\npurpose = "other"\nepsilon = 3\n'
    )
    assert (
        shell.run("budget", "--allocate", "limits.toml").out
        == "1 of 2 accounts have another limit now\n"
    )
    found = {
        row["account"]: row["limit"]
        for row in json.loads(shell.run("ledger", "accounts", "--format", "json").out)
    }
    assert found["shop/research/ann"] == {"epsilon": "0.5", "delta": "0.000001"}
    assert (found["shop/research"]["epsilon"], found["shop/other"]["epsilon"]) == ("2", "3")
