# SPDX-License-Identifier: Apache-2.0
"""``sfumato fit``: a file of a model, a run that goes on, refusals that cost nothing."""

from typing import Any

import pytest

from sfumato import learning as ln
from sfumato.learning import run as runs
from tests.cli.models_folder import write_models
from tests.contracts.shell import Shell


@pytest.fixture(autouse=True)
def folder(shell: Shell) -> None:
    write_models(shell)


def test_a_preview_is_free_and_a_fit_is_charged_once(shell: Shell) -> None:
    seen = shell.run("fit", "illness", "--preview")
    assert seen.code == 0 and "8 releases of 21 numbers" in seen.out
    for words in ("4 checkpoints", "memory: about", "cost: rho = 0.499", "nothing was charged"):
        assert words in seen.out
    ran = shell.run("fit", "illness", "-o", "illness.sfm")
    assert ran.code == 0 and "additive of age, city" in ran.out and "wrote illness.sfm" in ran.out
    model = ln.load(shell.folder / "illness.sfm")
    assert isinstance(model, ln.Model) and model.predict({"age": [5], "city": ["east"]}) == [
        "False"
    ]
    spent = shell.run("budget").out
    again = shell.run("fit", "illness")
    assert model.charge in again.out and shell.run("budget").out == spent


def test_a_cost_of_the_command_replaces_that_of_the_file(shell: Shell) -> None:
    ran = shell.run("fit", "bayes", "--epsilon", "0.25")
    assert ran.code == 0 and "cost: epsilon = 0.25" in ran.out


def test_an_interrupted_run_is_told_and_goes_on(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, begun = runs.Piece.run, []

    def stopping(piece: runs.Piece, curator: Any) -> bytes:
        begun.append(piece)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return right(piece, curator)

    monkeypatch.setattr(runs.Piece, "run", stopping)
    stopped = shell.run("fit", "illness")
    assert stopped.code == 3 and "goes on from its last checkpoint" in stopped.err
    (told,) = (line for line in shell.run("fit", "illness", "--preview").out.splitlines()
               if line.startswith("paid before: run "))  # fmt: skip
    assert "1 of 4 pieces stored, 1 lost" in told
    run = told.split()[3].rstrip(":")
    refused = shell.run("fit", "illness", "--resume", run, "--rho", "0.25")
    assert refused.code == 2 and "another cost" in refused.err
    ran = shell.run("fit", "illness", "--resume", run)
    assert ran.code == 0 and run in ran.out
    assert len(begun) == 4


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nobody",), 1, "Allowed: illness, bayes, groups"),
        (("illness", "--rho", "x"), 2, "rho"),
        (("illness", "--epsilon", "1"), 2, "delta"),
        (("illness", "--rho", "99"), 1, "BudgetExceeded"),
        (("illness", "-o", "no/folder/m.sfm"), 2, "folder"),
        (("illness", "-o", "people.csv"), 2, "data of table"),
        (("illness", "--resume", "x"), 1, "No run 'x'"),
        (("groups", "--resume", "x"), 2, "measures once"),
    ],
)
def test_wrong_use_is_no_charge(
    shell: Shell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = shell.run("fit", *arguments)
    assert ran.code == code and words in ran.err
    assert "epsilon 0 of" in shell.run("budget", "--details").out
