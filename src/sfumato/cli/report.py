# SPDX-License-Identifier: Apache-2.0
"""``sfumato report pipia|dpia|release|registry``: the document that somebody signs."""

from collections.abc import Mapping
from pathlib import Path

import click

from sfumato.cli.language import present, say
from sfumato.cli.ledger import reading
from sfumato.cli.options import as_json, config, require_outputs, waits, write_file
from sfumato.config.toml_file import read_toml
from sfumato.engines.files import is_same
from sfumato.errors import WrongUse, shown
from sfumato.ledger.assessment import (
    KINDS,
    answers_in,
    answers_text,
    as_html,
    as_markdown,
    assess,
    audit_in,
    registry_record,
    to_json,
)
from sfumato.ledger.assessment_facts import Evidence, mechanisms_of
from sfumato.ledger.report_text import LANGUAGES
from sfumato.ledger.summary import summary
from sfumato.metadata.side_file import required_text


@click.command("report")
@click.argument("kind", type=click.Choice(KINDS))
@config
@waits
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write."
)
@click.option("--language", type=click.Choice(list(LANGUAGES)), help="Of the document.")
@click.option(
    "--answers",
    type=click.Path(dir_okay=False),
    help="Your answers to its questions (TOML); written with the questions if it does not exist.",
)
@click.option(
    "--audit",
    type=click.Path(dir_okay=False),
    help="What 'sfumato audit system --format json' printed.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json"]),
    help="Of the document [default: html; registry: json, which is YAML too].",
)
def command(
    *,
    kind: str,
    config: str,
    output: str,
    language: str | None,
    answers: str | None,
    audit: str | None,
    form: str | None,
) -> None:
    """Write an assessment or a public description, from declarations and the ledger; free.

    pipia: China's Personal Information Protection Law; dpia: the GDPR; release: one page for
    readers of a release; registry: a record for the Differential Privacy Deployments Registry.
    Judgements are questions for you. No row is read.
    """
    require_outputs(config, output, answers)
    if audit is not None and any(
        path is not None and is_same(Path(path), Path(audit)) for path in (output, answers)
    ):
        raise WrongUse(f"{shown(audit)} is the saved audit.", remedy="Write to another path.")
    if kind == "registry" and form not in (None, "json"):
        raise WrongUse(f"--format {form} of registry.", allowed="--format json, which is YAML too")
    chosen = language or present().code
    answered: Mapping[str, str] = {}
    is_new = answers is not None and not Path(answers).exists()
    if answers is not None and not is_new:
        answered = answers_in(kind, read_toml(answers))
    saved = None if audit is None else audit_in(required_text(audit))
    with reading(config) as (ledger, declared):
        evidence = Evidence(
            summary(ledger, declared.dataset.name),
            declared.dataset,
            mechanisms_of(ledger, declared.dataset.name),
            bool(declared.ledger_heads),
            saved,
        )
    document = assess(kind, evidence, answered, chosen)
    if kind == "registry":
        text = as_json(registry_record(evidence, answered))
    elif form == "json":
        text = as_json(to_json(document))
    else:
        text = as_markdown(document) if form == "md" else as_html(document)
    write_file(output, text.encode())
    say(output)
    if answers is not None and is_new:
        write_file(answers, answers_text(kind, chosen).encode())
        say(answers)
    for warning in document.warnings:
        click.echo(warning)
