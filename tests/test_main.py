# SPDX-License-Identifier: Apache-2.0
"""``python -m sfumato`` is the command."""

import subprocess
import sys

from sfumato import __version__


def module(*arguments: str) -> subprocess.CompletedProcess[str]:
    """``python -m sfumato`` in a real process."""
    command = [sys.executable, "-m", "sfumato", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_shows_its_version_and_its_commands() -> None:
    assert module("--version").stdout.strip() == f"sfumato, version {__version__}"
    shown = module("--help")
    assert shown.returncode == 0
    for name in ("check", "preview", "query", "budget", "ledger", "demo"):
        assert name in shown.stdout


def test_its_exit_code_is_that_of_the_command() -> None:
    failed = module("budget", "-c", "nowhere.toml")
    assert failed.returncode == 2
    assert failed.stderr.startswith("InvalidConfig: No file 'nowhere.toml'.")
    assert "Traceback" not in failed.stderr
