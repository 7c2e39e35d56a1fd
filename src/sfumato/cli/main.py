# SPDX-License-Identifier: Apache-2.0
"""The command ``sfumato`` with all its subcommands; each is imported when it is called."""

import io
import signal
import sys

import click

from sfumato import __version__
from sfumato.cli.language import LANGUAGES, choose, say
from sfumato.cli.lazy_group import LazyGroup
from sfumato.errors import Refused, SfumatoError, without_secrets

# The commands by what a user does.
_SECTIONS = {
    "Declare": {
        "init": ("sfumato.cli.init", "Write a file of declarations, with places to fill."),
        "check": ("sfumato.cli.check", "Check the declarations, the data and the ledger."),
        "prepare": ("sfumato.cli.prepare", "Write layouts of the data that make questions fast."),
        "pictures": ("sfumato.cli.pictures", "Write the pictures of a folder as rows of a file."),
    },
    "Ask": {
        "preview": ("sfumato.cli.preview", "Cost and expected error of a question; free."),
        "advise": ("sfumato.cli.advise", "Which clip, which cost, which groups; free."),
        "query": ("sfumato.cli.query", "Ask a question; it is charged."),
        "marginals": (
            "sfumato.cli.marginals",
            "Count rows by several sets of columns together; it is charged.",
        ),
        "publish": (
            "sfumato.cli.publish",
            "Ask the questions of a file for one cost; it is charged.",
        ),
        "diagnose": (
            "sfumato.cli.diagnose",
            "How much clipping and bounding touch; it is charged.",
        ),
        "census": (
            "sfumato.cli.census_command",
            "Measure tables down a geography that add up; it is charged.",
        ),
        "synopsis": (
            "sfumato.cli.synopsis",
            "One measurement that answers a workload; charged once.",
        ),
        "graph": (
            "sfumato.cli.graph",
            "Edges, degrees and triangles of a table of ties; it is charged.",
        ),
        "mine": (
            "sfumato.cli.mine",
            "Words, sets of items and sequences of many people; charged once.",
        ),
        "stream": ("sfumato.cli.stream", "Counts that go on, tick by tick, under one charge."),
    },
    "Make rows, train models": {
        "synthesize": (
            "sfumato.cli.synthesize",
            "Synthetic rows of a table, with a report; it is charged.",
        ),
        "fit": ("sfumato.cli.fit", "Fit a model of the file; charged once."),
        "predict": ("sfumato.cli.predict", "Apply a fitted model to rows; free."),
        "score": (
            "sfumato.cli.score",
            "How often a fitted model is right on private rows; charged.",
        ),
        "frontier": (
            "sfumato.cli.frontier",
            "Accuracy of a model against epsilon, on public rows; free.",
        ),
    },
    "Hear devices": {
        "telemetry": ("sfumato.cli.telemetry", "Counts of devices that nobody can read."),
        "collect": ("sfumato.cli.collect", "Receive reports of devices."),
        "shuffle": ("sfumato.cli.shuffle", "Mix sealed reports of devices on their way."),
    },
    "Serve analysts": {
        "serve": ("sfumato.cli.serve", "Answer people with accounts over HTTP."),
        "user": ("sfumato.cli.user", "The people of a service."),
        "token": ("sfumato.cli.token", "Tokens of the people of a service."),
    },
    "Study with others": {
        "study": ("sfumato.cli.study", "One question to several sites, without pooled data."),
        "site": ("sfumato.cli.site", "One site of a study: its rows, its ledger, its owner."),
    },
    "Keep the budget": {
        "budget": ("sfumato.cli.budget", "What is spent and what is left."),
        "ledger": ("sfumato.cli.ledger", "Accounts, audit, export and report of the ledger."),
        "report": ("sfumato.cli.report", "Assessments and public descriptions; free."),
        "explain-epsilon": ("sfumato.cli.explain_epsilon", "What an epsilon means; free."),
    },
    "Try and attack": {
        "demo": ("sfumato.examples.demo", "Demonstrations on public and on made-up data."),
        "audit": ("sfumato.cli.audit", "Try to break the promise of every mechanism."),
    },
}


def _chosen(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    """Sets the language from the option ``--language``."""
    choose(value)


@click.group(
    cls=LazyGroup, sections=_SECTIONS, context_settings={"help_option_names": ["-h", "--help"]}
)
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
    """Runs a command and exits; an error becomes a message and an exit code, without traceback."""
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
        if isinstance(error, Refused) and error.instead is not None:
            say(f"Instead: {error.instead}", err=True)
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
