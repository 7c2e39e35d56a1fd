# SPDX-License-Identifier: Apache-2.0
"""Exit codes, and errors that are messages: never a traceback, never a private value."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from sfumato import errors
from sfumato.cli import main
from sfumato.errors import Cancelled, EngineFailed, SfumatoError
from tests.contracts.shell import COUNT, Shell

COMMANDS = (
    "init",
    "check",
    "prepare",
    "pictures",
    "preview",
    "advise",
    "query",
    "marginals",
    "publish",
    "diagnose",
    "census",
    "synopsis",
    "graph",
    "mine",
    "stream",
    "synthesize",
    "fit",
    "predict",
    "score",
    "frontier",
    "telemetry",
    "collect",
    "shuffle",
    "serve",
    "user",
    "token",
    "study",
    "site",
    "budget",
    "ledger",
    "report",
    "explain-epsilon",
    "demo",
    "audit",
)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0), (("--help",), 0), (("query", "--help"), 0), (("budget",), 0),
        (("query", COUNT, "--epsilon", "1"), 0), (("query", COUNT, "--epsilon", "2000000"), 2),
        (("query", COUNT, "--epsilon", "0"), 2), (("query", COUNT), 2), (("query", COUNT, "--epsilon", "abc"), 2),
        (("query", "SELECT * FROM people", "--epsilon", "1"), 1), (("query", "SELECT", "--epsilon", "1"), 1),
        (("query", COUNT, "--error", "5%", "--max-epsilon", "1e-6"), 1), (("query",), 2), (("query", COUNT, "--nope"), 2),
        (("nonsense",), 2), (("budget", "-c", "none.toml"), 2), (("query", COUNT, "--epsilon", "1", "--format", "xml"), 2),
        (("preview", COUNT, "--rho", "1", "--epsilon", "1"), 2), (("ledger", "verify"), 3), (("ledger", "nothing"), 2),
    ],
    ids=str,
)  # fmt: skip
def test_the_exit_code_says_who_has_to_act(
    shell: Shell, arguments: tuple[str, ...], code: int
) -> None:
    ran = shell.run(*arguments)
    assert ran.code == code
    assert bool(ran.err) == (code != 0)


def test_an_exhausted_budget_is_a_refusal(shell: Shell) -> None:
    shell.configure('"1000000"', '"0.5"')
    assert shell.run("query", COUNT, "--epsilon", "0.5").code == 0
    ran = shell.run("query", COUNT, "--epsilon", "0.6")
    assert ran.code == 1
    assert ran.err.startswith("BudgetExceeded: The question costs epsilon 0.6; the account has")


def test_a_busy_or_corrupt_ledger_is_a_failure(shell: Shell) -> None:
    shell.write("ledger.db", "I am no ledger at all")
    ran = shell.run("budget")
    assert (ran.code, ran.err.split(":")[0]) == (3, "LedgerCorrupt")


def test_an_error_has_its_problem_what_is_allowed_and_the_remedy(shell: Shell) -> None:
    ran = shell.run("query", "SELECT COUNT(*) FROM nowhere", "--epsilon", "1")
    assert ran.err.startswith("UnknownName: No table 'nowhere'.\nAllowed: people")
    ran = shell.run("query", "SELECT age FROM people", "--epsilon", "1")
    assert "What to do: " in ran.err


def test_the_place_of_a_syntax_error_is_shown(shell: Shell) -> None:
    ran = shell.run("query", "SELECT COUNT(*)\nFROM people WHERE (age > 3", "--epsilon", "1")
    assert ran.code == 1
    assert "line 2, column" in ran.err


def test_the_help_lists_every_command_without_loading_them(shell: Shell) -> None:
    shown = shell.run("--help").out
    assert all(name in shown for name in COMMANDS)
    listed = click.Context(main.sfumato)
    assert main.sfumato.list_commands(listed) == list(COMMANDS)
    assert main.sfumato.get_command(listed, "nothing") is None


ERRORS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, SfumatoError)
]
MADE = {"EngineFailed": EngineFailed, "Cancelled": lambda: Cancelled(paid=True)}


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_every_error_has_an_exit_code_of_the_design(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, error: type
) -> None:
    arguments = {"SqlSyntaxError": {"line": 1, "column": 1}, "OuterFailed": {"charges": ()}}.get(
        error.__name__, {}
    )
    raised = MADE.get(error.__name__, lambda: error("a problem", **arguments))()
    assert isinstance(raised, SfumatoError)
    monkeypatch.setattr("sfumato.cli.asking.load", lambda *_, **__: _raise(raised))
    ran = shell.run("budget")
    assert ran.code == raised.exit_code
    assert ran.err.startswith(f"{error.__name__}: ")


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    "failure", [ValueError("Mr. Secret"), RecursionError("Mr. Secret"), MemoryError("Mr. Secret")]
)
def test_an_unknown_failure_is_one_line_without_its_text(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    monkeypatch.setattr("sfumato.cli.asking.load", lambda *_, **__: _raise(failure))
    ran = shell.run("budget")
    assert (ran.code, ran.err) == (
        3,
        f"An internal failure ({type(failure).__name__}). Please report it.\n",
    )


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), click.Abort()], ids=repr)
def test_an_interruption_says_that_a_question_stays_charged(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    monkeypatch.setattr("sfumato.cli.asking.load", lambda *_, **__: _raise(interruption))
    assert shell.run("budget").code == 3


def test_a_process_that_is_told_to_end_ends_as_by_ctrl_c() -> None:
    # a command that is told so while it runs
    told = "main.sfumato.main = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)"
    script = f"import os, signal\nfrom sfumato.cli import main\n{told}\nmain.main()"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (3, b"")
    assert ran.stderr == b"Interrupted. A question that had begun stays charged.\n"


def test_a_closed_pipe_is_no_failure(shell: Shell) -> None:
    command = [sys.executable, "-m", "sfumato", "query", COUNT, "--epsilon", "1"]
    with subprocess.Popen(
        command, cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a disk that is always full"
)
def test_an_answer_that_cannot_be_written_is_not_lost(shell: Shell) -> None:
    command = [sys.executable, "-m", "sfumato", "query", COUNT, "--epsilon", "0.1"]
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            command, cwd=shell.folder, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert ran.returncode == 3
    assert ran.stderr.startswith(b"I/O error: No space left on device.")
    spent = shell.run("budget").out
    assert shell.run("query", COUNT, "--epsilon", "0.1").code == 0
    assert shell.run("budget").out == spent


@pytest.mark.parametrize(
    ("sql", "code", "said"), [(COUNT, 0, "n"), ("SELECT * FROM people", 1, "UnsupportedSql")]
)
def test_a_real_process_answers_and_refuses(shell: Shell, sql: str, code: int, said: str) -> None:
    command = [sys.executable, "-m", "sfumato", "query", sql, "--epsilon", "1"]
    ran = subprocess.run(
        command, cwd=shell.folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == code
    assert said in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_refusal_of_a_misspelt_command_names_the_likely_one(shell: Shell) -> None:
    assert "Did you mean synthesize?" in shell.run("synthesise").err
    assert "是否想写 synthesize" in shell.run("--language", "zh", "synthesise").err
    assert "Did you mean" not in shell.run("zzz").err
