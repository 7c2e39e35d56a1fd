# SPDX-License-Identifier: Apache-2.0
"""``sfumato study``: the analyst of a study, and its coordinator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from sfumato.cli.language import say
from sfumato.cli.options import emit, require_folders
from sfumato.cli.web_server import require_server, serve
from sfumato.config.model import read_model
from sfumato.errors import WrongUse
from sfumato.federated import Coordinator, Study, read_study
from sfumato.federated import open as open_study

_study = click.argument("study", type=click.Path(dir_okay=False))
_rho = click.option("--rho", required=True, help="What each site pays, in zCDP.")
_key = click.option(
    "--key", type=click.Path(dir_okay=False), required=True, help="The analyst's private key."
)
_wait = click.option(
    "--wait-s",
    type=float,
    default=600.0,
    show_default=True,
    help="How many seconds to wait for the sites.",
)


@click.group("study")
def command() -> None:
    """One question to several sites: no row leaves a site, and sums alone can be read."""


@command.command("check")
@_study
@click.option("--key", type=click.Path(dir_okay=False), help="The analyst's private key.")
def _check(study: str, key: str | None) -> None:
    """Show what a study declares; with --key, also which sites were heard."""
    declared = read_study(study)
    terms = declared.terms
    say(f"study {declared.name}, {terms.study[:12]}; roster {terms.roster[:12]}")
    say(
        f"{terms.sites} sites, {terms.least} or more a step, {terms.colluders} may collude, "
        f"a person in at most {terms.overlap}"
    )
    if key is not None:
        with open_study(study, key=Path(key)) as opened:
            for name, text in opened.sites.items():
                say(f"{name}: {text}")


@command.command("preview")
@_study
@click.argument("sql")
@_key
@_rho
def _preview(study: str, sql: str, key: str, rho: str) -> None:
    """Show the cost of SQL for each site and its expected error; free."""
    with open_study(study, key=Path(key)) as opened:
        say(repr(opened.preview(sql, rho=rho)))


@command.command("query")
@_study
@click.argument("sql")
@_key
@_rho
@_wait
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
)
def _query(
    study: str,
    sql: str,
    key: str,
    rho: str,
    wait_s: float,
    form: str,
) -> None:
    """Ask all sites SQL together; each site's ledger is charged.

    The same question at the same rho is answered from the ledgers, at no cost.
    """
    with open_study(study, key=Path(key)) as opened:
        answer = _of_sites(opened, lambda: opened.query(sql, rho=rho, wait_s=wait_s))
    emit(answer, form, None)


@command.command("fit")
@_study
@click.argument("name")
@_key
@_rho
@_wait
@click.option(
    "--models",
    type=click.Path(dir_okay=False),
    required=True,
    help="The file that declares it as [models.NAME].",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="The file of the model.")
def _fit(
    study: str,
    name: str,
    key: str,
    rho: str,
    wait_s: float,
    **files: str | None,
) -> None:
    """Fit the model NAME to the rows of all sites together; each site's ledger is charged.

    A fit that broke off goes on from the last piece that all sites have stored.
    """
    models, output = str(files["models"]), files["output"]
    declared = read_model(models, name)
    if output is not None:
        require_folders(output)
    with open_study(study, key=Path(key)) as opened:
        model = _of_sites(
            opened,
            lambda: opened.fit(
                declared.recipe, declared.data, label=declared.label, rho=rho, wait_s=wait_s
            ),
        )
    say(repr(model))
    if output is not None:
        model.save(output)
        say(f"wrote {output}")


@command.command("serve")
@_study
@click.option("--folder", required=True, help="Where messages and sums are kept.")
@click.option("--host", help="Where to listen, if not at the address of the study.")
@click.option("--port", type=int, help="Its port, if not that of the study.")
def _serve(study: str, folder: str, host: str | None, port: int | None) -> None:
    """Add up the shares of the sites until it is stopped; it has no data and no key."""
    require_server()
    declared = read_study(study)
    address = urlsplit(declared.coordinator)
    if address.scheme == "https" and (host is None or port is None):
        raise WrongUse(
            "The study's address is https, which another server must offer.",
            remedy="--host 127.0.0.1 --port 8390, behind a proxy with a certificate",
        )
    at_host, at_port = host or address.hostname or "", port or address.port or 80
    app = Coordinator(declared, folder)
    say(f"adding for {declared.name} at http://{at_host}:{at_port}")
    serve(app, at_host, at_port)
    say("stopped; messages and sums are stored")


def _of_sites(study: Study, ask: Callable[[], Any]) -> Any:
    """What a question gives; says what each site said if it fails."""
    try:
        return ask()
    except KeyboardInterrupt:
        for name, text in study.sites.items():
            say(f"{name}: {text}", err=True)
        raise
