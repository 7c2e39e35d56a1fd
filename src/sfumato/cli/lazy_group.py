# SPDX-License-Identifier: Apache-2.0
"""A group of commands that imports the module of a command only when it is called."""

import gc
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from sfumato.cli.language import localized, present
from sfumato.config.near_names import near

# The module of each command and what it does, by the name of the command.
Listed = Mapping[str, tuple[str, str]]


class LazyGroup(click.Group):
    """A group that imports the module of a command when it is called, and not for --help.

    ``sections`` has the commands, grouped by the user's task for ``--help``.
    """

    def __init__(self, *given: Any, sections: Mapping[str, Listed], **named: Any) -> None:
        super().__init__(*given, **named)
        self.sections = sections
        self.modules = {
            name: module for listed in sections.values() for name, (module, _) in listed.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.modules:
            return None
        collects = gc.isenabled()
        # what an import makes stays: to walk it again and again is a tenth of a start
        gc.disable()
        try:
            command = vars(import_module(self.modules[cmd_name]))["command"]
        finally:
            if collects:
                gc.enable()
        assert isinstance(command, click.Command), "each module of a command has one"
        return localized(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            ctx.fail(f"{error.message} {near(args[0], self.modules)}".rstrip())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        words = present()
        for title, listed in self.sections.items():
            with formatter.section(words.sentence(title)):
                rows = [(name, words.sentence(text)) for name, (_, text) in listed.items()]
                formatter.write_dl(rows)

    def get_help(self, ctx: click.Context) -> str:
        made = localized(self)
        if made is self:
            return super().get_help(ctx)
        with made.context_class(made, parent=ctx.parent, info_name=ctx.info_name) as other:
            return click.Group.get_help(made, other)
