# SPDX-License-Identifier: Apache-2.0
"""``sfumato site``: one site of a study."""

import threading

import click

from sfumato.cli.language import say
from sfumato.errors import InvalidConfig
from sfumato.federated.declaration import read_site, read_study
from sfumato.federated.site import Site, approve, runs_of

_config = click.option(
    "-c",
    "--config",
    default="site.toml",
    show_default=True,
    help="The file that declares the site.",
)


@click.group("site")
def command() -> None:
    """One site of a study: it compiles each question itself, and its own ledger decides."""


@command.command("check")
@_config
def _check(config: str) -> None:
    """Compare the declarations of this site with those of the study."""
    with Site(config) as site:
        apart = site.differences()
        budget = repr(site.session.budget)
    if apart:
        raise InvalidConfig(
            f"{site.file.site} declares otherwise: {'; '.join(apart)}.",
            remedy="Declare them as the study does.",
        )
    say(f"{site.file.site} declares everything as the study {site.study.name}")
    say(budget)


@command.command("serve")
@_config
def _serve(config: str) -> None:
    """Take part in the runs of the study until it is stopped. It connects out only."""
    stop = threading.Event()
    with Site(config) as site:
        say(f"{site.file.site} takes part in {site.study.name} at {site.study.coordinator}")
        try:
            site.serve(stop, say)
        except KeyboardInterrupt:
            say("stopped; a run that was under way is withdrawn, or paid where it was executed")
            raise


@command.command("approve")
@_config
@click.argument("run")
def _approve(config: str, run: str) -> None:
    """Approve the run RUN, by the first digits of its id."""
    file = read_site(config)
    whole = approve(file, read_study(file.study), run)
    say(f"approved {whole}")


@command.command("status")
@_config
def _status(config: str) -> None:
    """List the runs of the study with what each site said last."""
    file = read_site(config)
    for line in runs_of(file, read_study(file.study)):
        say(line)
