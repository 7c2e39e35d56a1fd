# SPDX-License-Identifier: Apache-2.0
"""Converts frames of other libraries, and relations of DuckDB, to Arrow tables.

``sources`` uses it for tables that are declared by a frame in memory.
"""

import logging
from typing import Any

import duckdb

from sfumato.engines.duckdb_printer import quote
from sfumato.engines.files import require_names, unreadable
from sfumato.errors import InvalidSource

_OWNER = logging.getLogger("sfumato.owner")


def arrow_of(name: str, source: object) -> object:
    """Converts a frame to an Arrow table.

    Raises:
        InvalidSource: it is no frame, Arrow has no type for one of its columns, or a text is not
            UTF-8.
    """
    failed = ""
    damaged: int | None = None
    kind = type(source).__name__
    names: list[str] = []
    table: object = None
    try:
        import pyarrow  # an Arrow frame needs it, a file does not

        frame = pyarrow.table(without_wide_integers(source))
        table = frame
        names = frame.column_names
        for place, column in enumerate(frame.columns):
            if "string" in str(column.type):
                # Arrow does not look at the bytes of a text: each question that reads it would fail
                damaged = place
                column.validate(full=True)
    except Exception as failure:
        failed = type(failure).__name__
    if failed == "ValueError":
        # raised by Arrow for a pandas frame with two columns of one name; its text has no name
        labels = getattr(source, "columns", ())
        require_names(
            name,
            kind,
            [label for label in labels if isinstance(label, str)],
        )
    if failed and damaged is not None:
        raise _not_unicode(name, kind, damaged)
    if failed:
        # outside the handler: Arrow quotes the value at which it failed
        raise _unreadable_frame(name, source, failed)
    require_names(name, kind, names)
    return table


def without_wide_integers(source: object) -> object:
    """Returns a DuckDB relation with its 128-bit integers cast to strings of the same value.

    Arrow has no 128-bit integers. DuckDB would convert them to decimals of 38 digits, in which
    2**128 - 1 is read as -1 and -(2**127) makes a question fail.
    """
    if not isinstance(source, duckdb.DuckDBPyRelation):
        return source
    casts = []
    for column, kind in zip(source.columns, map(str, source.types), strict=True):
        element, *brackets = kind.partition("[")
        if element in ("HUGEINT", "UHUGEINT"):
            textual = "".join(["VARCHAR", *brackets])
            casts.append(f"CAST({quote(column)} AS {textual}) AS {quote(column)}")
    return source.project(f"* REPLACE ({', '.join(casts)})") if casts else source


def _unreadable_frame(
    name: str,
    source: Any,
    failed: str,
) -> InvalidSource:
    """Returns the error for a frame: it names the column where one is the reason.

    Nothing of Arrow's own message is in it.
    """
    kind = type(source).__name__
    if kind == "LazyFrame":
        return InvalidSource(
            f"Table {name!r}: a LazyFrame is a query that has not run.",
            remedy="Hand in its rows: frame.collect().",
        )
    place = _odd_column(source)
    if place is None:
        return unreadable(name, kind, failed)
    _OWNER.error(
        "table %s: column %r has no type of Arrow",
        name,
        source.columns[place],
    )
    if failed == "UnicodeEncodeError":
        return _not_unicode(name, kind, place)
    return InvalidSource(
        f"Table {name!r}: column {place + 1} of {kind!r} has values of several types, "
        "or of one that Arrow does not know.",
        allowed="one type in each column",
        remedy=f"Give it one, as frame[frame.columns[{place}]].astype(str) does in pandas and "
        f"frame[frame.columns[{place}]].cast(str) in polars, or leave it out of the frame.",
    )


def _not_unicode(name: str, kind: str, place: int) -> InvalidSource:
    """Returns the error for a frame whose column at ``place`` has a text that is not Unicode."""
    return InvalidSource(
        f"Table {name!r}: column {place + 1} of {kind!r} has a text that is not Unicode.",
        allowed="UTF-8, without lone surrogates (U+D800 to U+DFFF)",
        remedy="Read the file again with its own encoding, or leave the column out.",
    )


def _odd_column(source: Any) -> int | None:
    """Returns the index of the first column of a pandas or polars frame that Arrow cannot
    convert."""
    import pyarrow  # an Arrow frame needs it, a file does not

    place = None
    try:
        for column in source.columns:
            if not isinstance(column, str):
                return None
            place = 0 if place is None else place + 1
            pyarrow.table(source[[column]])
    except Exception:
        return place
    return None
