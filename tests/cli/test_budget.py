# SPDX-License-Identifier: Apache-2.0
"""``sfumato budget``: the account, exact."""

import json

from tests.cli.models_folder import write_models
from tests.contracts.shell import COUNT, Shell


def test_a_tenth_ten_times_is_shown_as_one(shell: Shell) -> None:
    for index in range(10):
        shell.run("query", f"{COUNT} WHERE age > {index}", "--epsilon", "0.1")
    assert "spent     epsilon 1 of 1000000 (pure gate)" in shell.run("budget", "--details").out
    assert "you       owner, for unstated: epsilon 1 spent" in shell.run("budget").out


def test_the_account_of_the_asker_comes_first_then_those_above(shell: Shell) -> None:
    ask = ("--analyst", "ann", "--purpose", "research")
    shell.run("query", COUNT, "--epsilon", "0.1", *ask)
    shell.run("ledger", "allocate", "--purpose", "research", "--analyst", "ann", "--epsilon", "0.5")
    shell.run("ledger", "allocate", "--purpose", "research", "--epsilon", "2")
    assert shell.run("budget", *ask).out.splitlines() == [
        "you       ann, for research: epsilon 0.1 spent of epsilon 0.5",
        "left      one question of epsilon up to 0.4",
        "above     the purpose research: epsilon 0.1 spent of epsilon 2",
        "          the dataset shop: epsilon 0.1 spent of epsilon 1000000, delta 0.000001",
        "You can ask about 4 more questions like the last, which cost epsilon 0.1.",
    ]
    assert "gate" in shell.run("budget", "--details", *ask).out


def test_as_many_questions_are_left_as_are_said(shell: Shell) -> None:
    shell.configure('"1000000"', '"1"')
    shell.run("query", COUNT, "--rho", "0.005")
    said = shell.run("budget").out
    assert "You can ask about 3 more questions like the last, which cost rho 0.005." in said
    for index in range(3):
        assert shell.run("query", f"{COUNT} WHERE age > {index}", "--rho", "0.005").code == 0
    assert "You cannot ask another question like the last" in shell.run("budget").out
    assert shell.run("query", f"{COUNT} WHERE age > 50", "--rho", "0.005").code == 1


def test_the_delta_of_trainings_is_counted_too(shell: Shell) -> None:
    write_models(shell)
    fit = ("fit", "illness", "--delta", "2e-6", "--epsilon")
    assert "; of delta up to 0.000003" in shell.run(*fit, "0.5").out
    said = shell.run("budget").out
    # epsilon and rho would pay for more, but half of the delta of 1e-5 pays for one more only
    assert "1 more question like the last, which cost epsilon 0.5, delta 0.000002." in said
    assert "owner, for unstated: epsilon 0.5, delta 0.000002 spent" in said
    assert shell.run(*fit, "0.25").code == 0
    assert "delta 0.000004 of 0.000005 for questions" in shell.run("budget", "--details").out
    assert "You cannot ask another question like the last" in shell.run("budget").out
    assert shell.run(*fit, "0.125").code == 1
    assert "delta 0.000004  left" in shell.run("ledger", "accounts").out
    log = shell.run("ledger", "log").out
    assert "epsilon 0.25, delta 0.000002, by town/unstated/owner" in log
    shell.run("ledger", "report", "--output", "r.html")
    assert "δ 0.000004" in (shell.folder / "r.html").read_text(encoding="utf-8")


def test_before_the_first_question_nothing_is_compared(shell: Shell) -> None:
    said = shell.run("budget").out
    assert said.startswith("you       owner, for unstated: epsilon 0 spent, no limit of its own\n")
    assert "like the last" not in said


def test_a_frozen_account_says_so(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "0.1")
    shell.run("ledger", "freeze", "--reason", "a fault")
    said = shell.run("budget").out
    assert "frozen    shop: a fault" in said
    assert "You cannot ask another question" in said


def test_json_holds_every_number_as_a_decimal(shell: Shell) -> None:
    shell.run("query", COUNT, "--rho", "0.25")
    form = json.loads(shell.run("budget", "--format", "json").out)
    assert form["limit"] == {"epsilon": "1000000", "delta": "0.000001"}
    assert form["spent"] == {"epsilon": "unbounded", "rho": "0.25", "delta": "0"}
    assert form["reserved"] == {"epsilon": "0", "rho": "0", "delta": "0"}
    assert (form["left"]["delta"], form["gates"]["delta"]) == ("0.0000005", "0.0000005")
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
