# SPDX-License-Identifier: Apache-2.0
"""The folder in which commands run."""

from pathlib import Path

import pytest

from tests.contracts.shell import Shell


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """A declared folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Shell(tmp_path, capsys)
