# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit release``: what published tables of counts give away, anybody's tables."""

import csv
from collections.abc import Mapping
from io import StringIO

import click

from sfumato.audit.published import Published, published
from sfumato.audit.verdict import table
from sfumato.cli.language import say
from sfumato.cli.options import as_json, table_or_json
from sfumato.errors import InvalidDeclaration, WrongUse, shown
from sfumato.metadata.side_file import required_text
from sfumato.privacy.event import Json

_GROUP_COLUMNS = ("column", "group", "value")


@click.command("release")
@click.argument(
    "files", nargs=-1, required=True, metavar="TABLE.csv...", type=click.Path(dir_okay=False)
)
@click.option("--count", default="n", show_default=True, help="The column of the counts.")
@click.option("--suppressed", metavar="LOW,HIGH", help="What an empty count may be: 1,9.")
@click.option("--rounded", type=int, help="Counts were rounded to the nearest multiple of it.")
@click.option(
    "--groups",
    type=click.Path(dir_okay=False),
    help="A CSV file (column, group, value): values that stand for several others.",
)
@click.option("--seconds", type=float, default=60, show_default=True, help="When to stop.")
@click.option("--show", is_flag=True, help="List the combinations too, not their number alone.")
@table_or_json
def command(
    *,
    files: tuple[str, ...],
    count: str,
    suppressed: str | None,
    rounded: int | None,
    groups: str | None,
    seconds: float,
    show: bool,
    form: str,
) -> None:
    """What exact tables of counts give away: who has which combination of all columns.

    Each file has a column for each category and one of counts. A combination that is missing has
    count 0.
    """
    result = published(
        [_rows(name) for name in files],
        count=count,
        suppressed=_interval(suppressed),
        rounded=rounded,
        groups=_groups(groups),
        seconds=seconds,
    )
    if form == "json":
        click.echo(as_json(_json(result, show=show)))
        return
    for line in _lines(result):
        say(line)
    if show and result.cells:
        rows = [(*result.columns, "count")]
        rows.extend((*cell.values, str(cell.count)) for cell in result.cells)
        say(f"\n{table(rows)}")


def _lines(result: Published) -> list[str]:
    """Returns the sentences of the result."""
    if result.reason:
        return [f"Nothing follows: {result.reason}."]
    names = ", ".join(result.columns)
    lines = [
        f"Of {result.determined} persons the whole combination follows: {names}.",
        f"{result.unique} of them are alone in theirs.",
    ]
    if not result.complete:
        lines.append("The time was over before every combination was examined: at least so many.")
    return lines


def _json(result: Published, *, show: bool) -> Json:
    """Returns the result as JSON."""
    columns: list[Json] = list(result.columns)
    body: dict[str, Json] = {
        "columns": columns,
        "determined": result.determined,
        "unique": result.unique,
        "complete": result.complete,
        "reason": result.reason,
    }
    if show:
        cells: list[Json] = []
        for cell in result.cells:
            values: list[Json] = list(cell.values)
            cells.append({"values": values, "count": cell.count})
        body["cells"] = cells
    return body


def _rows(name: str) -> list[dict[str, str]]:
    """Reads a CSV file with a heading."""
    lines = StringIO(required_text(name, "a CSV file"), newline="")
    try:
        rows = [dict(row) for row in csv.DictReader(lines, strict=True)]
    except csv.Error:
        raise WrongUse(f"{shown(name)} cannot be read.", allowed="a CSV file") from None
    if any(None in row or None in row.values() for row in rows):
        raise WrongUse(f"{name}: a line with more or fewer fields than the heading.")
    return rows


def _interval(text: str | None) -> tuple[int, int] | None:
    """Reads LOW,HIGH."""
    if text is None:
        return None
    try:
        low, high = map(int, text.split(","))
    except ValueError:
        raise WrongUse(f"--suppressed {text!r}.", allowed="two integers: 1,9") from None
    return low, high


def _groups(name: str | None) -> Mapping[str, Mapping[str, list[str]]] | None:
    """Reads the values that stand for several others."""
    if name is None:
        return None
    groups: dict[str, dict[str, list[str]]] = {}
    for row in _rows(name):
        if set(row) != set(_GROUP_COLUMNS):
            raise InvalidDeclaration(
                f"{name} has the columns {', '.join(row)}.", allowed=", ".join(_GROUP_COLUMNS)
            )
        groups.setdefault(row["column"], {}).setdefault(row["group"], []).append(row["value"])
    return groups
