# SPDX-License-Identifier: Apache-2.0
"""``sfumato init``: writes a ``sfumato.toml`` from the names and types of the columns of data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import click

from sfumato.cli.codebook import read_codebook
from sfumato.cli.init_keys import Keys
from sfumato.cli.init_questions import asked
from sfumato.cli.init_sources import Columns, columns_of, place_in, sources_of, table_name
from sfumato.cli.init_toml import TableDraft, config_text
from sfumato.cli.language import say
from sfumato.cli.options import require_folders, write_file
from sfumato.config.open_places import OPEN
from sfumato.errors import WrongUse, shown
from sfumato.metadata.server import is_address

# Of a sheet that begins with a title, whose cell is the only one of its row.
_TITLE = "note: its first row has one name; if the names stand lower, --header-row 3"


@click.command("init")
@click.argument("places", nargs=-1, required=True, metavar="FILE|FOLDER|ADDRESS...")
@click.option(
    "--codebook",
    "codebooks",
    multiple=True,
    type=click.Path(),
    help="Bounds, values, labels and missing codes: JSON, DDI XML, CSV, .sav, .dta; repeatable.",
)
@click.option("--table", help="The name of the table in a database or on a server.")
@click.option("--dataset", help="The name of the dataset; by default that of the folder.")
@click.option("--output", default="sfumato.toml", show_default=True, type=click.Path())
@click.option(
    "--header",
    type=click.Choice(["yes"]),
    help="The first line has names, even if they look like numbers or dates.",
)
@click.option(
    "--header-row", type=click.IntRange(min=1), help="The line or row that has the names."
)
@click.option("--interactive", is_flag=True, help="Ask for each column what belongs there.")
def command(
    places: tuple[str, ...],
    codebooks: tuple[str, ...],
    table: str | None,
    dataset: str | None,
    output: str,
    *,
    header: str | None,
    header_row: int | None,
    interactive: bool,
) -> None:
    """Write a file of declarations: what names and types say, and places to fill for the rest.

    Looks at names, types and the form of the first lines; never at the values. Nothing is charged.
    """
    require_folders(output)
    if Path(output).exists():
        raise WrongUse(f"{shown(output)} exists.", remedy="Name another file with --output.")
    folder = Path(output).absolute().parent
    for place in places:
        _require_no_password(place)
    sources = [source for place in places for source in sources_of(place)]
    described = read_codebook(codebooks)
    tables = []
    for source in sources:
        has_names = header is not None
        columns = columns_of(source, table, has_names=has_names, header_row=header_row)
        tables.append(_draft(source, columns, table, described, folder))
    _require_names(tables)
    keys = Keys.of({draft.name: list(draft.columns.known) for draft in tables})
    epsilon = OPEN
    if interactive:
        epsilon, tables = asked(tables, keys)
    text = config_text(dataset or folder.name or "data", tables, keys, epsilon=epsilon)
    write_file(output, text.encode())
    for draft in tables:
        say(f"table {draft.name}: {len(draft.columns.known)} columns")
        if len(draft.columns.known) == 1 and Path(draft.source).suffix.lower() == ".xlsx":
            say(_TITLE)
    say(f"written: {output}. Fill its open places; 'sfumato check' names them.")


def _draft(
    source: str,
    columns: Columns,
    table: str | None,
    described: Mapping[str, Mapping[str, object]],
    folder: Path,
) -> TableDraft:
    """Drafts the table of one source, with the codebooks' declarations of its columns."""
    said = {name: described[name] for name in columns.known if name in described}
    draft = TableDraft(table_name(source, table), source, columns, said, table)
    return replace(draft, source=place_in(source, folder))


def _require_no_password(place: str) -> None:
    """Refuses an address whose password would be written to a file."""
    if is_address(place) and urlsplit(place).password:
        raise WrongUse(
            "An address with a password, which would be written to a file.",
            allowed="postgresql://user@host/database, with the password in PGPASSWORD or .pgpass",
        )


def _require_names(tables: Sequence[TableDraft]) -> None:
    """Refuses two sources whose tables would have the same name."""
    names = [draft.name for draft in tables]
    for name in names:
        if names.count(name) > 1:
            raise WrongUse(
                f"Two sources would be the table {name!r}.", remedy="Rename one of the files."
            )
