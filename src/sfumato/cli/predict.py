# SPDX-License-Identifier: Apache-2.0
"""``sfumato predict``: applies a model file to the rows of a file."""

from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from pyarrow import csv

from sfumato.cli.frame_file import (
    read_rows,
    require_columns,
    require_rows_file,
    unread,
    with_plain_numbers,
    write_rows,
)
from sfumato.cli.language import say
from sfumato.cli.options import excel_option, require_csv_file, require_spared, write_bytes
from sfumato.engines.files import is_same
from sfumato.errors import WrongUse, shown
from sfumato.learning.clusters import Clusters
from sfumato.learning.components import Components
from sfumato.learning.load import Loaded, load
from sfumato.metadata.table import Table
from sfumato.query.answer_files import rows_for_excel


@click.command("predict")
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("data", type=click.Path(dir_okay=False))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="A .csv or .parquet [default: stdout]."
)
@excel_option
@click.option("--delimiter", help='Of a CSV file: ";", "|" or "\\t" where it is no comma.')
@click.option("--encoding", help="Of a CSV file that is not UTF-8: gb18030, for example.")
@click.option("--decimal", help='Of a CSV file: "," where the sign of a fraction is no point.')
@click.option("--thousands", help="Of a CSV file: the sign between groups of three digits.")
@click.option("--header-row", type=click.IntRange(min=1), help="The line that has the names.")
def command(
    file: str,
    data: str,
    *,
    output: str | None,
    excel: bool,
    delimiter: str | None,
    **written: Any,
) -> None:
    """Apply the model of FILE, which fit wrote, to the rows of DATA; free.

    DATA is a CSV or Parquet file with the columns of the model's SELECT; the options say how a CSV
    file is written, as the keys of a table of the same names in sfumato.toml do. Its rows are
    written with the prediction beside them, and the probability of each class: what is written is
    as private as DATA. What a sfumato.toml beside them declares is not overwritten.
    """
    require_rows_file(output)
    require_csv_file(output or "stdout.csv", excel=excel)
    require_spared(output)
    for path in (file, data):
        if output is not None and is_same(Path(path), Path(output)):
            raise WrongUse(
                f"{shown(output)} would be overwritten.", remedy="Write to another path."
            )
    model = model_of(file)
    declared = Table(data, delimiter=delimiter and delimiter.replace("\\t", "\t"), **written)
    rows = read_rows(data, declared)
    require_columns(rows, model.columns)
    numbers = {each.name: each.missing for each in model.columns if each.is_number}
    read = with_plain_numbers(rows, declared.numerals, numbers)
    predicted = said(model, rows, read)
    if excel:
        write_bytes(rows_for_excel(predicted), output)
    elif output is None:
        buffer = pa.BufferOutputStream()
        csv.write_csv(predicted, buffer)
        write_bytes(buffer.getvalue().to_pybytes(), None)
    else:
        write_rows(predicted, output)
    if output is not None:
        say(f"wrote {output}: {predicted.num_rows:,} rows")
    for note in unread(read, model.columns):
        say(note, err=output is None)


def said(model: Loaded, rows: pa.Table, read: pa.Table) -> pa.Table:
    """Adds the predictions of a model to rows, as new columns.

    ``read`` are the same rows as the model reads them.

    Raises:
        WrongUse: the rows have a column with the name of a new one.
    """
    predicted = rows
    for name, values in _columns(model, read).items():
        if name in rows.column_names:
            raise WrongUse(f"The rows have a column {name!r} already.", remedy="Rename it.")
        predicted = predicted.append_column(name, pa.array(values))
    return predicted


def _columns(model: Loaded, frame: pa.Table) -> dict[str, object]:
    """The new columns: predictions, and probabilities of classes."""
    if isinstance(model, Clusters):
        return {"cluster": model.predict(frame)}
    if isinstance(model, Components):
        found = model.transform(frame)
        return {f"component_{place + 1}": numbers for place, numbers in enumerate(found.T)}
    added: dict[str, object] = {"predicted": model.predict(frame)}
    if model.classes:
        shares = np.asarray(model.predict_proba(frame))
        for place, name in enumerate(model.classes):
            added[f"p_{name}"] = shares[:, place]
    return added


def model_of(file: str) -> Loaded:
    """Loads the model of a file.

    Raises:
        WrongUse: it cannot be read, or is not a model.
    """
    try:
        return load(file)
    except OSError as error:
        raise WrongUse(
            f"{shown(file)} cannot be read ({error.strerror}).",
            allowed="a file that sfumato fit NAME -o FILE wrote",
        ) from None
