# SPDX-License-Identifier: Apache-2.0
"""Tries what a user installs: the wheel and ``requirements/run.txt``, nothing else.

``make installed`` builds the wheel, installs it into an environment without any tool of the tests
and runs, from an empty folder, the help of every command, the demos, and the examples of README and
of every page of ``docs/``. A page or module that needs an extra has to name it when it fails.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
# ``sfumato demo`` alone, and with these names.
DEMOS = ("", "census", "graph", "hospitals", "learning", "mining", "stream", "synthetic")
ROOMS = ("audit", "learning", "synopsis", "synthetic", "telemetry")
# The package that is missing here, by the module or page that needs it, and how it is named.
NEED_EXTRA = {
    "sfumato.learning.sklearn": "pip install 'sfumato[sklearn]'",
    "sfumato.learning.torch": "pip install 'sfumato[torch]'",
    "docs/learning.md": "pip install 'sfumato[sklearn]'",
    "docs/networks.md": "pip install 'sfumato[torch]'",
    "docs/how-to/serve-a-model.md": "joblib",
    "docs/tutorials/notebook.md": "pandas",
}
_OPTIONS = ("ELLIPSIS", "NORMALIZE_WHITESPACE", "IGNORE_EXCEPTION_DETAIL")


def run(binaries: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the environment in a folder, with an empty home."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8"}
        command = [str(binaries / words[0]), *words[1:]]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
        )


def check_exit(name: str, finished: subprocess.CompletedProcess[str]) -> str:
    """What is wrong with a command that has to work; empty if nothing is."""
    if finished.returncode == 0:
        return ""
    return f"{name}: exit {finished.returncode}\n{finished.stdout[-600:]}{finished.stderr[-600:]}"


def check_extra(name: str, finished: subprocess.CompletedProcess[str]) -> str:
    """What is wrong with a module or page that needs an extra; empty if it names the extra."""
    if finished.returncode and NEED_EXTRA[name] in finished.stdout + finished.stderr:
        return ""
    return f"{name}: does not name {NEED_EXTRA[name]}\n{finished.stdout[-600:]}"


def commands(binaries: Path) -> list[str]:
    """The names of all commands, as the help lists them."""
    text = run(binaries, ROOT, "sfumato", "--help").stdout.partition("  -h, --help")[2]
    return re.findall(r"^  ([a-z][a-z-]*) ", text, re.MULTILINE)


def trials(binaries: Path) -> list[Callable[[], str]]:
    """All trials, the longest first; each returns what is wrong."""

    def demo(name: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            return check_exit(
                f"demo {name}", run(binaries, Path(folder), "sfumato", "demo", *name.split())
            )

    def help_of(name: str) -> str:
        return check_exit(f"{name} --help", run(binaries, ROOT, "sfumato", name, "--help"))

    def module(name: str) -> str:
        finished = run(binaries, Path("/"), "python", "-c", f"import {name}")
        return check_extra(name, finished) if name in NEED_EXTRA else check_exit(name, finished)

    def page(path: Path) -> str:
        name = path.relative_to(ROOT).as_posix()
        options = [word for option in _OPTIONS for word in ("-o", option)]
        finished = run(binaries, ROOT, "python", "-m", "doctest", *options, name)
        return check_extra(name, finished) if name in NEED_EXTRA else check_exit(name, finished)

    pages = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    modules = [name for name in NEED_EXTRA if "/" not in name]
    modules += [f"sfumato.{room}" for room in ROOMS]
    return [
        *(lambda name=name: demo(name) for name in DEMOS),
        *(lambda path=path: page(path) for path in pages),
        *(lambda name=name: help_of(name) for name in commands(binaries)),
        *(lambda name=name: module(name) for name in modules),
    ]


def main() -> int:
    """Runs all trials on two threads and prints what is wrong."""
    binaries = Path(sys.argv[1]).resolve()
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(lambda trial: trial(), trials(binaries)))
    faults = [result for result in results if result]
    print(*faults, sep="\n\n")
    print(f"installed: {len(results)} trials, {len(faults)} failed")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
