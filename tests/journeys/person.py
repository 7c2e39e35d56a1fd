# SPDX-License-Identifier: Apache-2.0
"""Somebody at a shell in a folder, who sees what is printed."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from sfumato.cli.main import run


class Person:
    """Types commands; ``site`` is a folder in which the package is installed, if it is not here."""

    def __init__(self, folder: Path, site: Path | None = None) -> None:
        self.folder = folder
        self.typed = 0
        self._here = site is None
        self._environment = {**os.environ, "PYTHONUTF8": "1"}
        if site is not None:
            self._environment["PYTHONPATH"] = str(site)

    def begins(self, *words: str) -> subprocess.Popen[str]:
        """A command that others do not wait for."""
        self.typed += 1
        return subprocess.Popen(
            [sys.executable, "-m", "sfumato", *words], cwd=self.folder, env=self._environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def types(self, *words: str) -> str:
        """What a command prints.

        In this process if the package is here: to import it takes longer than most commands.
        """
        if not self._here:
            return ended(self.begins(*words))
        self.typed += 1
        written = io.BytesIO()
        printed = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            run(list(words))
        return without_traceback(written.getvalue().decode())

    def imports_from(self) -> Path:
        """Where the package lies that the person uses."""
        line = "import sfumato; print(sfumato.__file__)"
        ran = subprocess.run(
            [sys.executable, "-c", line],
            cwd=self.folder, env=self._environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return Path(ran.stdout.strip())


def ended(running: subprocess.Popen[str]) -> str:
    """What a command has printed when it ends; never a traceback."""
    said, _ = running.communicate(timeout=120)
    return without_traceback(said)


def without_traceback(said: str) -> str:
    assert "Traceback" not in said
    return said
