# SPDX-License-Identifier: Apache-2.0
"""The command ``sfumato``; the module of each subcommand is imported when it is called."""

import io
import signal
import sys
from importlib import import_module

import click

from sfumato import __version__
from sfumato.cli.language import LANGUAGES, choose, localized, present, say
from sfumato.config.near_names import near
from sfumato.errors import SfumatoError, without_secrets

_COMMANDS = {
    "init": ("init", "Write a file of declarations, with places to fill."),
    "check": ("check", "Check the declarations, the data and the ledger."),
    "prepare": ("prepare", "Write layouts of the data that make questions fast."),
    "preview": ("preview", "Cost and expected error of a question; free."),
    "advise": ("advise", "Which clip, which cost, which groups; free."),
    "query": ("query", "Ask a question; it is charged."),
    "marginals": ("marginals", "Count rows by several sets of columns together; it is charged."),
    "census": ("census_command", "Measure tables down a geography that add up; it is charged."),
    "publish": ("publish", "Ask the questions of a file for one cost; it is charged."),
    "synthesize": ("synthesize", "Synthetic rows of a table, with a report; it is charged."),
    "synopsis": ("synopsis", "One measurement that answers a workload; charged once."),
    "fit": ("fit", "Fit a model of the file; charged once."),
    "predict": ("predict", "Apply a fitted model to rows; free."),
    "score": ("score", "How often a fitted model is right on private rows; charged."),
    "frontier": ("frontier", "Accuracy of a model against epsilon, on public rows; free."),
    "stream": ("stream", "Counts that go on, tick by tick, under one charge."),
    "telemetry": ("telemetry", "Counts of devices that nobody can read."),
    "collect": ("collect", "Receive reports of devices."),
    "shuffle": ("shuffle", "Mix sealed reports of devices on their way."),
    "diagnose": ("diagnose", "How much clipping and bounding touch; it is charged."),
    "budget": ("budget", "What is spent and what is left."),
    "explain-epsilon": ("explain_epsilon", "What an epsilon means; free."),
    "ledger": ("ledger", "Accounts, audit, export and report of the ledger."),
    "audit": ("audit", "Try to break the promise of every mechanism."),
    "demo": ("demo", "A census extract answers its first questions."),
    "demo-census": ("demo_census", "Census tables down a geography, with a page to look at."),
    "demo-stream": ("demo_stream", "Rides day by day, and ten years of births denoised."),
    "demo-synthetic": ("demo_synthetic", "Synthetic rows of the census extract, and a page."),
    "demo-learning": ("demo_learning", "What accuracy costs; a training is killed and resumed."),
    "demo-telemetry": ("demo_telemetry", "A million made-up devices that nobody can read."),
    "demo-hospitals": ("hospitals", "One unit over three tables: a study and a statistics office."),
}


class _Lazy(click.Group):
    """A group that imports the module of a command when it is called, and not for --help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        name, _ = _COMMANDS[cmd_name]
        command = vars(import_module(f"sfumato.cli.{name}"))["command"]
        assert isinstance(command, click.Command), "each module of a command has one"
        return localized(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            ctx.fail(f"{error.message} {near(args[0], _COMMANDS)}".rstrip())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        words = present()
        with formatter.section(words.sentence("Commands")):
            rows = [(name, words.sentence(text)) for name, (_, text) in _COMMANDS.items()]
            formatter.write_dl(rows)

    def get_help(self, ctx: click.Context) -> str:
        made = localized(self)
        if made is self:
            return super().get_help(ctx)
        with made.context_class(made, info_name=ctx.info_name) as other:
            return click.Group.get_help(made, other)


def _chosen(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    """Chooses the language of all that follows."""
    choose(value)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sfumato")
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    callback=_chosen,
    expose_value=False,
    is_eager=True,
    help="The language of messages [default: SFUMATO_LANG, or en].",
)
def sfumato() -> None:
    """Questions about personal data, answered with differential privacy."""


def main() -> None:
    """Runs a command and exits; an error becomes a message and an exit code, not a traceback."""
    # SIGTERM cleans up as Ctrl-C does
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs a command line and returns its exit code."""
    choose(None)
    try:
        result = sfumato.main(arguments, prog_name="sfumato", standalone_mode=False)
    except SfumatoError as error:
        say(f"{type(error).__name__}: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        lines = [without_secrets(line) for line in message.getvalue().splitlines()]
        say("\n".join(lines), err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        say("Interrupted. A question that had begun stays charged.", err=True)
        return 3
    except (BrokenPipeError, SystemExit):
        # click exits if the pipe of its output is closed
        return 0
    except OSError as error:
        # the message of the system, without the path
        say(
            f"I/O error: {error.strerror or type(error).__name__}. A question that was answered "
            "stays charged; asked again, it is free.",
            err=True,
        )
        return 3
    except Exception as error:
        # the message of the exception could quote private data
        say(f"An internal failure ({type(error).__name__}). Please report it.", err=True)
        return 3
    return result if isinstance(result, int) else 0
