# SPDX-License-Identifier: Apache-2.0
"""The command ``sfumato``: its commands are loaded when they are called."""

import io
import signal
import sys
from importlib import import_module

import click

from sfumato import __version__
from sfumato.errors import SfumatoError, without_secrets

_COMMANDS = {
    "check": ("check", "Check the declarations, the data and the ledger."),
    "prepare": ("prepare", "Write layouts of the data that make questions fast."),
    "preview": ("preview", "Cost and expected error of a question; free."),
    "query": ("query", "Ask a question; it is charged."),
    "marginals": ("marginals", "Count rows by several sets of columns together; it is charged."),
    "diagnose": ("diagnose", "How much clipping and bounding touch; it is charged."),
    "budget": ("budget", "What is spent and what is left."),
    "explain-epsilon": ("explain_epsilon", "What an epsilon means; free."),
    "ledger": ("ledger", "Accounts, audit, export and report of the ledger."),
    "audit": ("audit", "Try to break the promise of every mechanism."),
    "demo": ("demo", "A census extract answers its first questions."),
    "demo-hospitals": ("hospitals", "One unit over three tables: a study and a statistics office."),
}


class _Lazy(click.Group):
    """Loads a command's file when it is called, and not for --help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = vars(import_module(f"sfumato.cli.{_COMMANDS[cmd_name][0]}"))["command"]
        assert isinstance(command, click.Command), "each file of a command has one"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sfumato")
def sfumato() -> None:
    """Questions about personal data, answered with differential privacy."""


def main() -> None:
    """Runs a command; every error becomes a message and an exit code, never a traceback."""
    # whoever ends a process so wants it to leave nothing behind, as with Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of a command line."""
    try:
        result = sfumato.main(arguments, prog_name="sfumato", standalone_mode=False)
    except SfumatoError as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        click.echo("\n".join(map(without_secrets, told.getvalue().splitlines())), err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. A question that had begun stays charged.", err=True)
        return 3
    except (BrokenPipeError, SystemExit):
        # click exits where nobody reads what it writes any more
        return 0
    except OSError as error:
        # the system's words, without the path
        click.echo(
            f"What should be read or written could not be: {error.strerror or type(error).__name__}. A question that "
            "had been answered stays charged, and is answered again for nothing.",
            err=True,
        )
        return 3
    except Exception as error:
        # its text could quote private data
        click.echo(f"An internal failure ({type(error).__name__}). Please report it.", err=True)
        return 3
    return result if isinstance(result, int) else 0
