# SPDX-License-Identifier: Apache-2.0
"""Runs a page of the documentation as its reader would: writes its files, types its commands.

A fenced block with a ``title`` is a file of that name. In a block of ``console``, a line after ``$``
is a command, and the lines below it are what it prints. ``...`` stands for anything.
"""

import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

from sfumato.cli.main import run

_BLOCK = re.compile(
    r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$", re.M | re.S
)
_SAME = OutputChecker()


@dataclass(frozen=True, slots=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the reader types, and what the page says that it prints."""

    line: str
    printed: str


def steps(page: str) -> Iterator[File | Command]:
    """The files and the commands of a page, in order."""
    for block in _BLOCK.finditer(page):
        if block["title"]:
            yield File(block["title"], block["body"])
        elif block["kind"] == "console":
            yield from _commands(block["body"])


def _commands(body: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        line, _, printed = part.partition("\n")
        while line.endswith("\\"):
            more, _, printed = printed.partition("\n")
            line = line[:-1] + more
        yield Command(line, printed)


def follow(page: str, folder: Path, root: Path) -> list[str]:
    """Does in a folder what the page says; returns what differs from it.

    Args:
        page: the text of the page.
        folder: where the reader works.
        root: the checkout, which the page calls ``SFUMATO``.
    """
    different = []
    for step in steps(page):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        printed = _typed(step.line, folder, root)
        if not _SAME.check_output(step.printed, printed, ELLIPSIS | NORMALIZE_WHITESPACE):
            different.append(f"$ {step.line}\nthe page says:\n{step.printed}\nprinted:\n{printed}")
    return different


def _typed(line: str, folder: Path, root: Path) -> str:
    """What a command prints; ``cp`` copies a file of the checkout."""
    name, *words = shlex.split(line)
    if name == "cp":
        source, target = words
        shutil.copy(source.replace("SFUMATO", str(root)), folder / target)
        return ""
    assert name == "sfumato", f"a page cannot run {line!r}"
    printed = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        run(words)
    return printed.getvalue()
