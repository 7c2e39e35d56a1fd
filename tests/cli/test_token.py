# SPDX-License-Identifier: Apache-2.0
"""``sfumato token``: a token is printed once, alone on the last line."""

from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.service.opening import Directory
from tests.contracts.clinic import written


def test_a_token_stands_alone_on_the_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path))
    run(["user", "add", "ann", "-c", path])
    capsys.readouterr()
    assert run(["token", "add", "ann", "--expires", "7d", "--read-only", "-c", path]) == 0
    secret = capsys.readouterr().out.splitlines()[-1]
    with Directory(tmp_path / "service.db") as opened:
        caller = opened.people.caller(secret)
        assert caller.name == "ann" and caller.read_only


@pytest.mark.parametrize(
    "wrong", [["nobody"], ["ann", "--expires", "soon"], ["ann", "--expires", "0d"]]
)
def test_a_wrong_token_is_refused(tmp_path: Path, wrong: list[str]) -> None:
    path = str(written(tmp_path))
    run(["user", "add", "ann", "-c", path])
    assert run(["token", "add", *wrong, "-c", path]) in (1, 2)
