# SPDX-License-Identifier: Apache-2.0
"""Sources as Spark DataFrames, and what may be one: rows that every read finds again."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.engines.files import from_file, unreadable
from sfumato.errors import InvalidSource, shown
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What is sent to Spark from here travels in its messages.
_MOST_BYTES = 64 * 2**20
# What Spark does not take from Arrow, and what holds the same values.
_TAKEN = {"string_view": "string", "halffloat": "float", "date64[ms]": "date32"}
_TAKEN |= dict.fromkeys(("uint8", "uint16", "uint32"), "int64")
# What finds the same rows each time, whatever the rows are; of others that is not known.
_STABLE = {
    "Filter",
    "Join",
    "LocalRelation",
    "LogicalRDD",
    "OneRowRelation",
    "Project",
    "Range",
    "RepartitionByExpression",
    "Repartition",
    "ResolvedHint",
    "Sort",
    "SubqueryAlias",
    "Union",
    "View",
}
# Formats of which no row can change what another one means; of others that is not known.
_FORMATS = ("parquet", "orc")
_TABLES = ("ParquetTable", "OrcTable")
# What Spark asks of days before 1582 where it is not told how they were counted; EXCEPTION fails on one.
_REBASES = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
_REBASE_OPTIONS = ("datetimeRebaseMode", "int96RebaseMode")
_MILLISECONDS = re.compile(r"int64 \S+ \(TIMESTAMP\(MILLIS|TIMESTAMP_MILLIS")
# What looks at values on the way, of columns that are not declared too.
_LOOKS = {"Filter", "Join", "Sort", "RepartitionByExpression"}
# What fails on no row.
_TESTS = {
    "EqualTo",
    "EqualNullSafe",
    "GreaterThan",
    "GreaterThanOrEqual",
    "LessThan",
    "LessThanOrEqual",
    "In",
    "InSet",
}
_TOTAL = _TESTS | {
    "Alias",
    "And",
    "AttributeReference",
    "CaseWhen",
    "Coalesce",
    "If",
    "IsNotNull",
    "IsNull",
    "Literal",
    "Not",
    "Or",
    "SortOrder",
}


def is_frame(source: object) -> bool:
    """Whether a source is a Spark DataFrame; asks nothing of Spark.

    >>> is_frame("events.parquet")
    False
    """
    return any(
        each.__module__.startswith("pyspark.sql.") and each.__name__ == "DataFrame"
        for each in type(source).__mro__
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
        raise unreadable(
            name, source if isinstance(source, str | Path) else type(source).__name__, failed
        )
    return frame


def _of_application(session: "SparkSession", name: str, frame: Any) -> "DataFrame":
    """The frame, if it belongs to this application."""
    if (
        ".connect." in type(frame).__module__
        or frame.sparkSession.sparkContext is not session.sparkContext
    ):
        raise InvalidSource(
            f"Table {name!r}: a DataFrame of Spark Connect, or of another application.",
            allowed="DataFrames of one classic Spark session",
        )
    found: DataFrame = frame
    return found


def _parquet(session: "SparkSession", name: str, path: str) -> "DataFrame":
    if path.lower().endswith(".csv"):
        raise InvalidSource(
            f"Table {name!r}: {shown(path)} is CSV, which Spark does not read as strictly as it must be read.",
            allowed="Parquet",
            remedy="Write it as Parquet, or leave engine= out.",
        )
    # the columns of all files, so that two that do not fit together show now
    return session.read.option("mergeSchema", "true").parquet(path)


def _arrow(name: str, source: object) -> Any:
    """A small table that lies here."""
    import pyarrow

    if isinstance(source, str | Path):
        path = Path(source).absolute()
        if path.stat().st_size > _MOST_BYTES:
            raise _too_large(name)
        with duckdb.connect() as connection:
            return connection.sql(
                f"SELECT * FROM {from_file(connection, name, path)}"
            ).to_arrow_table()
    found = pyarrow.table(source)
    if found.nbytes > _MOST_BYTES:
        raise _too_large(name)
    return found.cast(pyarrow.schema([(field.name, _taken(field.type)) for field in found.schema]))


def _taken(kind: Any) -> Any:
    """A type that Spark takes from Arrow, with the same values."""
    import pyarrow

    if str(kind) == "uint64":
        return pyarrow.decimal128(20, 0)
    return pyarrow.type_for_alias(_TAKEN[str(kind)]) if str(kind) in _TAKEN else kind


def _too_large(name: str) -> InvalidSource:
    return InvalidSource(
        f"Table {name!r} is too large to be sent to Spark.",
        allowed=f"{_MOST_BYTES >> 20} MiB",
        remedy="Write it as Parquet where Spark can read it, and hand in spark.read.parquet(...).",
    )


def require_plain(name: str, frame: "DataFrame") -> None:
    """What the frame does with its rows fails on none, and every read of it finds the same ones.

    A row on which it failed would be told by the failure; bounds are proved for one table. Whatever is
    not known to be so is refused. The rows of an RDD are taken at their word.

    Raises:
        InvalidSource: a stream, something random, something that keeps rows by their place, that
            computes or aggregates.
    """
    jvm = frame.sparkSession.sparkContext._jvm
    for node in _nodes(frame):
        odd = [] if _is_stable(node) else [_kind(node)]
        odd += [
            each for expression in _all(node.expressions()) for each in _partial(expression, jvm)
        ]
        if odd or frame.isStreaming:
            raise InvalidSource(
                f"Table {name!r}: its DataFrame has {odd[0] if odd else 'a stream'}: another read may find other "
                "rows, or fail on one.",
                allowed="tables and files; their columns, casts that cannot fail, tests but of fractions, joins, unions",
                remedy="Write it to a table first, or ask for the rest in SQL.",
            )


def require_moments(name: str, frame: "DataFrame", columns: Collection[str]) -> None:
    """No moment or day of a Parquet file makes a read fail: ``columns`` are read.

    Spark multiplies milliseconds by 1,000 while it decodes a page, and fails on one beyond 2^63
    microseconds; in the mode EXCEPTION it fails on a day before 1582.

    Raises:
        InvalidSource: such a mode of the relation, or such a column that may be read.
    """
    nodes = _nodes(frame)
    for node in nodes:
        if (
            _kind(node) == "LogicalRelation"
            and _format(node) == "parquet"
            and "EXCEPTION" in _rebases(node.relation())
        ):
            raise InvalidSource(
                f"Table {name!r}: its DataFrame reads Parquet in the rebase mode EXCEPTION, which fails on an old day.",
                allowed="CORRECTED or LEGACY",
                remedy=f"Set {' and '.join(_REBASES)} to CORRECTED, and read it again.",
            )
    read = any(
        field.name in columns and field.dataType.simpleString().startswith("timestamp")
        for field in frame.schema
    )
    if (
        (read or _LOOKS & set(map(_kind, nodes)))
        and _has_moments(nodes)
        and _has_milliseconds(frame)
    ):
        raise InvalidSource(
            f"Table {name!r}: its files hold TIMESTAMP(MILLIS), of which one value can make a read fail.",
            allowed="dates, or timestamps in microseconds",
            remedy="Write them again in microseconds; pyarrow: coerce_timestamps='us'.",
        )


def _rebases(relation: Any) -> list[str]:
    """The modes in which a relation of Parquet reads old days: its own options, or the settings of its session."""
    options, settings = relation.options(), relation.sparkSession().conf()
    own = [
        str(pair._2()).upper()
        for pair in _all(options.toSeq())
        if str(pair._1()).lower() in [each.lower() for each in _REBASE_OPTIONS]
    ]
    return own + [str(settings.get(each)).upper() for each in _REBASES]


def _has_moments(nodes: Sequence[Any]) -> bool:
    """Whether a relation has a column of moments at all."""
    return any(
        each.dataType().simpleString().startswith("timestamp")
        for node in nodes
        if not _all(node.children())
        for each in _all(node.output())
    )


def _has_milliseconds(frame: "DataFrame") -> bool:
    """Whether a Parquet file of a frame has a column in milliseconds, by its footer."""
    context = frame.sparkSession.sparkContext
    jvm: Any = context._jvm
    settings = context._jsc.hadoopConfiguration()
    hadoop = jvm.org.apache.parquet.hadoop
    for file in frame.inputFiles():
        if file.lower().endswith(".orc"):
            continue
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
        reader = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(path, settings))
        try:
            found = reader.getFooter().getFileMetaData().getSchema().toString()
        finally:
            reader.close()
        if _MILLISECONDS.search(str(found)):
            return True
    return False


def _nodes(frame: "DataFrame") -> list[Any]:
    """The nodes of the analysed plan of a frame."""
    found, waiting = [], [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += _all(node.children())
    return found


def _is_stable(node: Any) -> bool:
    """Whether every read finds the same rows, whatever they are."""
    match _kind(node):
        case "LogicalRelation":
            return _format(node) in _FORMATS
        case "DataSourceV2Relation":
            return _kind(node.table()) in _TABLES
        case "HiveTableRelation":
            serde = str(node.tableMeta().storage().serde().toString()).lower()
            return any(each in serde for each in _FORMATS)
        case kind:
            return kind in _STABLE


def _format(node: Any) -> str:
    """What a relation of files calls its format."""
    return str(node.relation().toString()).lower()


def _partial(expression: Any, jvm: Any) -> list[str]:
    """What in an expression may fail on a row, or be asked of a file that says nothing of NaN."""
    waiting, found = [expression], []
    while waiting:
        node = waiting.pop()
        kind, inside = _kind(node), _all(node.children())
        if kind == "Cast":
            casts = jvm.org.apache.spark.sql.catalyst.expressions.Cast
            total = node.evalMode().toString() != "ANSI" or casts.canUpCast(
                inside[0].dataType(), node.dataType()
            )
        else:
            total = kind in _TOTAL and not (kind in _TESTS and any(map(_is_fraction, inside)))
        found += [] if total else [kind]
        waiting += inside
    return found


def _is_fraction(node: Any) -> bool:
    return node.dataType().simpleString() in ("float", "double")


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _all(sequence: Any) -> list[Any]:
    """A sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.size())]
