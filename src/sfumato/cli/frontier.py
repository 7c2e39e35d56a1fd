# SPDX-License-Identifier: Apache-2.0
"""``sfumato frontier``: accuracy of a declared model at several epsilons, on public rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from sfumato.cli.frame_file import read_rows, with_plain_numbers
from sfumato.cli.language import say
from sfumato.cli.options import as_json, config, require_outputs, table_or_json, write_file
from sfumato.cli.waiting import counting
from sfumato.config.load import read_declarations
from sfumato.config.model import ModelConfig, read_model
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.learning.examples_of import Examples
from sfumato.learning.frontier import Frontier, frontier
from sfumato.metadata.column import Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.relation import Scan
from sfumato.plan.scope import nodes

_EPSILONS = ("0.1", "0.3", "1", "3")
_FOLDS = 10
_ENDINGS = (".svg", ".json")
_OF_CSV = ("delimiter", "encoding", "decimal", "thousands", "header_row")


@click.command("frontier")
@click.argument("name")
@config
@click.option(
    "--public",
    type=click.Path(dir_okay=False),
    help="A file of PUBLIC rows like the private ones: they are not protected.",
)
@click.option("--epsilons", help="Ascending costs, with commas [default: 0.1,0.3,1,3].")
@click.option("--delta", help="Beside each epsilon [default: delta of the file].")
@click.option("--folds", type=int, help="Fits at each epsilon [default: 10].")
@table_or_json
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A picture (.svg), or .json.")
def command(
    name: str,
    *,
    config: str,
    public: str | None,
    epsilons: str | None,
    delta: str | None,
    folds: int | None,
    form: str,
    output: str | None,
) -> None:
    """How accurate the model NAME would be at each epsilon, on public rows; free.

    The private data is not read, and no ledger is opened. The public rows have the columns of the
    table that the model reads, declared as it is: an open data set, or synthetic rows.
    """
    require_outputs(config, output)
    if output is not None and Path(output).suffix not in _ENDINGS:
        raise WrongUse(f"{shown(output)} is no picture and no JSON.", allowed=", ".join(_ENDINGS))
    declared = read_model(config, name)
    asked = {
        "epsilons": _epsilons(declared, epsilons),
        "delta": delta if delta is not None else declared.form.get("delta"),
        "folds": folds if folds is not None else declared.form.get("folds", _FOLDS),
    }
    frontier = _measure_frontier(config, declared, public, asked)
    if output is not None and output.endswith(".svg"):
        write_file(output, frontier.plot().svg.encode())
    elif output is not None:
        write_file(output, as_json(frontier.to_json()).encode())
    if form == "json":
        click.echo(as_json(frontier.to_json()))
        return
    say(repr(frontier))
    if output is not None:
        say(f"wrote {output}")


def _measure_frontier(
    config: str,
    declared: ModelConfig,
    public: str | None,
    asked: dict[str, Any],
) -> Frontier:
    """Measures the frontier of a declared model on the rows of a public file."""
    label = declared.label
    if label is None:
        raise WrongUse(
            "The accuracy of a model without a label.", allowed="a recipe that predicts a class"
        )
    dataset = read_declarations(config).dataset
    table = _table(dataset, declared)
    path = _public(config, declared, public)
    rows = _read_public(path, dataset.tables[table])
    with counting("fits on public rows") as count:
        return frontier(
            declared.recipe,
            rows,
            dataset.tables[table].columns,
            declared.data,
            label=label,
            table=table,
            progress=count,
            **asked,
        )


def _read_public(path: str, private: Table) -> pa.Table:
    """Reads the public rows. A CSV file is written as the private one is, where that is CSV."""
    are_csv = all(str(source).lower().endswith(".csv") for source in (path, private.source))
    declared = Table(path, **{name: getattr(private, name) for name in _OF_CSV if are_csv})
    rows = read_rows(path, declared)
    numbers = {
        name: kind.missing or ()
        for name, kind in private.columns.items()
        if isinstance(kind, Integer | Real) and name in rows.column_names
    }
    return with_plain_numbers(rows, declared.numerals, numbers)


def _public(config: str, declared: ModelConfig, public: str | None) -> str:
    """The path of the public rows: the option, or that of the file, relative to the file."""
    if public is not None:
        return public
    if "public" not in declared.form:
        raise WrongUse(
            "A frontier without public rows.",
            remedy='--public FILE, or public = "FILE" in the file: rows that are like the private '
            "ones and that need no protection.",
        )
    return str(Path(config).parent / declared.form["public"])


def _table(dataset: Dataset, declared: ModelConfig) -> str:
    """The only private table that the model reads."""
    examples = Examples.of(dataset, declared.data, declared.label, declared.recipe.bag)
    read = {node.table for node in nodes(examples.plan.rows.relation) if isinstance(node, Scan)}
    if len(read) != 1:
        raise WrongUse(
            f"A frontier of {len(read)} tables.",
            allowed="a SELECT from one table",
            remedy="In Python: ln.frontier with public rows of the SELECT itself.",
        )
    return read.pop()


def _epsilons(declared: ModelConfig, given: str | None) -> Sequence[Any]:
    """The costs at which the model is measured."""
    if given is not None:
        return [each.strip() for each in given.split(",")]
    stated = declared.form.get("epsilons", _EPSILONS)
    if not isinstance(stated, list | tuple):
        raise InvalidConfig(
            f"models.{declared.name}: epsilons.", allowed='epsilons = ["0.1", "1"], ascending'
        )
    return stated
