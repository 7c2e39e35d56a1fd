# SPDX-License-Identifier: Apache-2.0
"""A command that a lazy group finds."""

import click


@click.command("spell")
@click.argument("word")
def command(word: str) -> None:
    """Say a word letter by letter."""
    click.echo(" ".join(word))
