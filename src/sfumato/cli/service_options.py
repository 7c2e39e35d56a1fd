# SPDX-License-Identifier: Apache-2.0
"""The options of ``sfumato serve``, ``user`` and ``token``."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from sfumato.errors import WrongUse
from sfumato.metadata.side_file import required_text
from sfumato.service.opening import Directory
from sfumato.service.settings import Settings, read_settings

# who acts at the shell, as the trail names it
OPERATOR = "operator"

config = click.option(
    "-c",
    "--config",
    default="sfumato.toml",
    show_default=True,
    help="A server.toml, or the sfumato.toml of one dataset.",
)


@contextmanager
def directory(path: str) -> Iterator[tuple[Directory, Settings]]:
    """Context manager that opens the directory of a service's users, whether the service is running
    or not. Yields the directory and the settings of the service.
    """
    settings = read_settings(path)
    with Directory(settings.state) as opened:
        yield opened, settings


def read_password(path: str | None) -> str:
    """A password from a file, without the end of its line, or from whoever sits at the terminal.

    Raises:
        WrongUse: the file cannot be read, or there is no terminal.
    """
    if path is not None:
        return required_text(path).removesuffix("\n").removesuffix("\r")
    if not sys.stdin.isatty():
        raise WrongUse("A password, and no terminal.", remedy="--password-file")
    return getpass.getpass()
