# SPDX-License-Identifier: Apache-2.0
"""Sources as Spark DataFrames, and what may be one: rows that every read finds again."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.engines.files import from_file, unreadable
from sfumato.errors import InvalidSource
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What is sent to Spark from here travels in its messages.
_MOST_BYTES = 64 * 2**20
# Of these, Spark may keep other rows each time.
_UNSTABLE = {"GlobalLimit", "LocalLimit", "Tail", "Offset", "Sample", "Deduplicate", "DeduplicateWithinWatermark"}


def is_frame(source: object) -> bool:
    """Whether a source is a Spark DataFrame; asks nothing of Spark.

    >>> is_frame("events.parquet")
    False
    """
    return any(
        each.__module__.startswith("pyspark.sql.") and each.__name__ == "DataFrame" for each in type(source).__mro__
    )


def shared_session(tables: Mapping[str, Table]) -> "SparkSession | None":
    """The Spark session whose DataFrames are handed in; None: there is none among the sources.

    Raises:
        InvalidSource: a private table of which Spark knows nothing beside one of Spark's.
    """
    frames = {name: table.source for name, table in tables.items() if is_frame(table.source)}
    elsewhere = [name for name, table in tables.items() if name not in frames and not table.public]
    if frames and elsewhere:
        raise InvalidSource(
            f"Table {next(iter(frames))!r} is in Spark, and {elsewhere[0]!r} is not.",
            allowed="private tables in one engine",
            remedy=f"Read {elsewhere[0]!r} by Spark too: sf.Table(spark.read.parquet(...)).",
        )
    session: SparkSession | None = next((frame.sparkSession for frame in frames.values()), None)  # type: ignore[attr-defined]
    return session


def frame_of(session: "SparkSession", name: str, table: Table) -> "DataFrame":
    """The source of a table in a session.

    Parquet is read by Spark, where it lies; what is small and lies here (a public file, a
    frame of Arrow, pandas or polars) is sent.

    Raises:
        InvalidSource: no source of Spark's, or more to send than is sensible.
    """
    source = table.source
    if is_frame(source):
        return _of_application(session, name, source)
    frame, failed = None, ""
    try:
        if isinstance(source, str | Path) and not (table.public and Path(source).is_file()):
            frame = _parquet(session, name, str(source))
        else:
            frame = session.createDataFrame(_arrow(name, source))
    except InvalidSource:
        raise
    except Exception as failure:
        failed = type(failure).__name__
    if frame is None:
        # outside the handler: a failure may quote a value
        raise unreadable(name, source if isinstance(source, str | Path) else type(source).__name__, failed)
    return frame


def _of_application(session: "SparkSession", name: str, frame: Any) -> "DataFrame":
    """The frame, if it belongs to this application."""
    if ".connect." in type(frame).__module__ or frame.sparkSession.sparkContext is not session.sparkContext:
        raise InvalidSource(
            f"Table {name!r}: a DataFrame of Spark Connect, or of another application.",
            allowed="DataFrames of one classic Spark session",
        )
    found: DataFrame = frame
    return found


def _parquet(session: "SparkSession", name: str, path: str) -> "DataFrame":
    if path.lower().endswith(".csv"):
        raise InvalidSource(
            f"Table {name!r}: {path!r} is CSV, which Spark does not read as strictly as it must be read.",
            allowed="Parquet",
            remedy="Write it as Parquet, or leave engine= out.",
        )
    return session.read.parquet(path)


def _arrow(name: str, source: object) -> Any:
    """A small table that lies here."""
    import pyarrow

    if isinstance(source, str | Path):
        path = Path(source).absolute()
        if path.stat().st_size > _MOST_BYTES:
            raise _too_large(name)
        with duckdb.connect() as connection:
            return connection.execute(f"SELECT * FROM {from_file(connection, name, path)}").to_arrow_table()
    found = pyarrow.table(source)
    if found.nbytes > _MOST_BYTES:
        raise _too_large(name)
    return found


def _too_large(name: str) -> InvalidSource:
    return InvalidSource(
        f"Table {name!r} is too large to be sent to Spark.",
        allowed=f"{_MOST_BYTES >> 20} MiB",
        remedy="Write it as Parquet where Spark can read it, and hand in spark.read.parquet(...).",
    )


def require_repeatable(name: str, frame: "DataFrame") -> None:
    """Every read of the frame must find the same rows: bounds are proved for one table.

    Raises:
        InvalidSource: a stream, something random, or something that keeps rows by their place.
    """
    waiting = [frame._jdf.queryExecution().analyzed()]
    stable = not frame.isStreaming and waiting[0].deterministic()
    while waiting and stable:
        node = waiting.pop()
        stable = node.nodeName() not in _UNSTABLE
        for inner in (node.children(), node.subqueries()):
            waiting += [inner.apply(place) for place in range(inner.size())]
    if not stable:
        raise InvalidSource(
            f"Table {name!r}: another read of the DataFrame may find other rows.",
            allowed="tables and files; columns, filters, joins, unions and sums of them",
            remedy="Write it to a table first, without LIMIT, samples, DISTINCT of some columns and random numbers.",
        )
