# SPDX-License-Identifier: Apache-2.0
"""Opens sources as Spark DataFrames; accepts only those that give the same rows at every read."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.engines.files import from_file, unreadable
from sfumato.engines.frame_source import without_wide_integers
from sfumato.errors import InvalidSource, shown
from sfumato.metadata.server import StoredObject
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The largest table that is sent to Spark; it travels in Spark's messages.
_MOST_BYTES = 64 * 2**20
# Arrow types that Spark does not accept, and a type with the same values.
_TAKEN = {"string_view": "string", "halffloat": "float", "date64[ms]": "date32"}
_TAKEN |= dict.fromkeys(("uint8", "uint16", "uint32"), "int64")
# The plan nodes that are known to return the same rows at every read.
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
# The formats in which no row can change the meaning of another one.
_FORMATS = ("parquet", "orc")
_TABLES = ("ParquetTable", "OrcTable")
# The settings for days before 1582, whose calendar is not known; EXCEPTION fails on such a day.
_REBASES = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
_REBASE_OPTIONS = ("datetimeRebaseMode", "int96RebaseMode")
_MILLISECONDS = re.compile(r"int64 \S+ \(TIMESTAMP\(MILLIS|TIMESTAMP_MILLIS")
# The plan nodes that read values, also of columns that are not declared.
_LOOKS = {"Filter", "Join", "Sort", "RepartitionByExpression"}
# The expressions that cannot fail on a row.
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
    """Whether a source is a Spark DataFrame; does not start Spark.

    >>> is_frame("events.parquet")
    False
    """
    return any(
        base.__module__.startswith("pyspark.sql.") and base.__name__ == "DataFrame"
        for base in type(source).__mro__
    )


def shared_session(tables: Mapping[str, Table]) -> "SparkSession | None":
    """Returns the Spark session of the DataFrames among the sources; None if there are none.

    Raises:
        InvalidSource: some private tables are DataFrames of Spark and others are not.
    """
    frames = {name: table.source for name, table in tables.items() if is_frame(table.source)}
    elsewhere = [name for name, table in tables.items() if name not in frames and not table.public]
    if frames and elsewhere:
        raise InvalidSource(
            f"Table {next(iter(frames))!r} is in Spark, and {elsewhere[0]!r} is not.",
            allowed="private tables in one engine",
            remedy=f"Read {elsewhere[0]!r} by Spark too: sf.Table(spark.read.parquet(...)).",
        )
    for frame in frames.values():
        session: SparkSession = frame.sparkSession  # type: ignore[attr-defined]
        return session
    return None


def frame_of(
    session: "SparkSession",
    name: str,
    table: Table,
) -> "DataFrame":
    """Returns the source of a table as a DataFrame of a session.

    Spark reads Parquet itself. A small table in this process (a public file, a frame of Arrow,
    pandas or polars) is sent to Spark.

    Raises:
        InvalidSource: Spark cannot read the source, or the table is too large to send.
    """
    source = table.source
    if is_frame(source):
        return _of_application(session, name, source)
    if table.table is not None or isinstance(source, StoredObject):
        raise InvalidSource(
            f"Table {name!r}: a table of a database, or an object of a store, "
            "which Spark does not read.",
            allowed="Parquet, Arrow frames, DataFrames of Spark",
            remedy="Leave engine= out, or export the rows to Parquet.",
        )
    frame = None
    failed = ""
    try:
        if isinstance(source, str | Path) and not (table.public and Path(source).is_file()):
            frame = _parquet(session, name, str(source))
        else:
            frame = session.createDataFrame(_arrow(name, table))
    except InvalidSource:
        raise
    except Exception as failure:
        failed = type(failure).__name__
    if frame is None:
        # outside the handler: an error may quote a value
        shown_source = source if isinstance(source, str | Path) else type(source).__name__
        raise unreadable(name, shown_source, failed)
    return frame


def _of_application(
    session: "SparkSession",
    name: str,
    frame: Any,
) -> "DataFrame":
    """Returns the frame if it belongs to the application of the session."""
    is_remote = ".connect." in type(frame).__module__
    if is_remote or frame.sparkSession.sparkContext is not session.sparkContext:
        raise InvalidSource(
            f"Table {name!r}: a DataFrame of Spark Connect, or of another application.",
            allowed="DataFrames of one classic Spark session",
        )
    checked: DataFrame = frame
    return checked


def _parquet(
    session: "SparkSession",
    name: str,
    path: str,
) -> "DataFrame":
    if path.lower().endswith((".csv", ".xlsx")):
        raise InvalidSource(
            f"Table {name!r}: {shown(path)} is CSV or Excel, "
            "which Spark does not read as strictly as it must be read.",
            allowed="Parquet",
            remedy="Write it as Parquet, or leave engine= out.",
        )
    # merges the schemas of all files, so that files that do not fit together fail now
    return session.read.option("mergeSchema", "true").parquet(path)


def _arrow(name: str, table: Table) -> Any:
    """Returns a small table of this process as an Arrow table of types that Spark accepts."""
    import pyarrow

    source = table.source
    if isinstance(source, str | Path):
        path = Path(source).absolute()
        options = [f"{option}=" for option in table.reading]
        if path.suffix.lower() == ".xlsx":
            options = ["an Excel file"]
        if options:
            declared = ", ".join(options)
            raise InvalidSource(
                f"Table {name!r} declares {declared}, which is not read for Spark.",
                remedy="Write it as Parquet, or leave engine= out.",
            )
        if path.stat().st_size > _MOST_BYTES:
            raise _too_large(name)
        with duckdb.connect() as connection:
            item = from_file(connection, name, path, table.delimiter)
            return connection.sql(f"SELECT * FROM {item}").to_arrow_table()
    rows = pyarrow.table(without_wide_integers(source))
    if rows.nbytes > _MOST_BYTES:
        raise _too_large(name)
    fields = [(field.name, _taken(field.type)) for field in rows.schema]
    return rows.cast(pyarrow.schema(fields))


def _taken(kind: Any) -> Any:
    """Returns an Arrow type with the same values that Spark accepts."""
    import pyarrow

    name = str(kind)
    if name == "uint64":
        return pyarrow.decimal128(20, 0)
    if name in _TAKEN:
        return pyarrow.type_for_alias(_TAKEN[name])
    return kind


def _too_large(name: str) -> InvalidSource:
    return InvalidSource(
        f"Table {name!r} is too large to be sent to Spark.",
        allowed=f"{_MOST_BYTES >> 20} MiB",
        remedy="Write it as Parquet where Spark can read it, and hand in spark.read.parquet(...).",
    )


def require_plain(name: str, frame: "DataFrame") -> None:
    """Refuses a DataFrame that could fail on a row or return other rows at another read.

    A failure would reveal the row, and sensitivity is proved for one fixed table. Every plan node
    and expression that is not known to be safe is refused. The rows of an RDD are assumed to be
    fixed.

    Raises:
        InvalidSource: the frame is a stream, is random, selects rows by their position, computes
            or aggregates.
    """
    jvm = frame.sparkSession.sparkContext._jvm
    for node in _nodes(frame):
        odd = [] if _is_stable(node) else [_kind(node)]
        for expression in _all(node.expressions()):
            odd += _partial(expression, jvm)
        if odd or frame.isStreaming:
            raise InvalidSource(
                f"Table {name!r}: its DataFrame has {odd[0] if odd else 'a stream'}: "
                "another read may find other rows, or fail on one.",
                allowed="tables and files; their columns, casts that cannot fail, "
                "tests but of fractions, joins, unions",
                remedy="Write it to a table first, or ask for the rest in SQL.",
            )


def require_moments(
    name: str,
    frame: "DataFrame",
    columns: Collection[str],
) -> None:
    """Refuses a DataFrame whose timestamps or dates in Parquet could make a read fail.

    ``columns`` are the columns that are read.

    Spark multiplies milliseconds by 1,000 while it decodes a page, and fails on a timestamp beyond
    2^63 microseconds; in the mode EXCEPTION it fails on a day before 1582.

    Raises:
        InvalidSource: a relation is in this mode, or such a column may be read.
    """
    nodes = _nodes(frame)
    for node in nodes:
        if _kind(node) != "LogicalRelation" or _format(node) != "parquet":
            continue
        if "EXCEPTION" in _rebases(node.relation()):
            raise InvalidSource(
                f"Table {name!r}: its DataFrame reads Parquet in the rebase mode EXCEPTION, "
                "which fails on an old day.",
                allowed="CORRECTED or LEGACY",
                remedy=f"Set {' and '.join(_REBASES)} to CORRECTED, and read it again.",
            )
    may_read = _reads_moments(frame, columns) or _LOOKS & {_kind(node) for node in nodes}
    if may_read and _has_moments(nodes) and _has_milliseconds(frame):
        raise InvalidSource(
            f"Table {name!r}: its files hold TIMESTAMP(MILLIS), "
            "of which one value can make a read fail.",
            allowed="dates, or timestamps in microseconds",
            remedy="Write them again in microseconds; pyarrow: coerce_timestamps='us'.",
        )


def _reads_moments(frame: "DataFrame", columns: Collection[str]) -> bool:
    """Whether one of the columns is a timestamp."""
    return any(
        field.name in columns and _is_moment(field.dataType.simpleString())
        for field in frame.schema
    )


def _is_moment(kind: str) -> bool:
    return kind.startswith("timestamp")


def _rebases(relation: Any) -> list[str]:
    """Returns the rebase modes of a Parquet relation: its options, and its session's settings."""
    options = relation.options()
    settings = relation.sparkSession().conf()
    names = [name.lower() for name in _REBASE_OPTIONS]
    modes = []
    for pair in _all(options.toSeq()):
        if str(pair._1()).lower() in names:
            modes.append(str(pair._2()).upper())
    modes += [str(settings.get(name)).upper() for name in _REBASES]
    return modes


def _has_moments(nodes: Sequence[Any]) -> bool:
    """Whether a leaf of the plan has a timestamp column."""
    for node in nodes:
        if _all(node.children()):
            continue
        for column in _all(node.output()):
            if _is_moment(column.dataType().simpleString()):
                return True
    return False


def _has_milliseconds(frame: "DataFrame") -> bool:
    """Whether the footer of a Parquet file of a frame declares milliseconds."""
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
            schema = reader.getFooter().getFileMetaData().getSchema().toString()
        finally:
            reader.close()
        if _MILLISECONDS.search(str(schema)):
            return True
    return False


def _nodes(frame: "DataFrame") -> list[Any]:
    """Returns the nodes of a frame's analysed plan."""
    nodes = []
    waiting = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += _all(node.children())
    return nodes


def _is_stable(node: Any) -> bool:
    """Whether a plan node returns the same rows at every read, whatever they are."""
    match _kind(node):
        case "LogicalRelation":
            return _format(node) in _FORMATS
        case "DataSourceV2Relation":
            return _kind(node.table()) in _TABLES
        case "HiveTableRelation":
            serde = str(node.tableMeta().storage().serde().toString()).lower()
            return any(form in serde for form in _FORMATS)
        case kind:
            return kind in _STABLE


def _format(node: Any) -> str:
    """Returns what a relation of files calls its format."""
    return str(node.relation().toString()).lower()


def _partial(expression: Any, jvm: Any) -> list[str]:
    """Returns the nodes of an expression that may fail on a row.

    A comparison of floats is among them: Spark may push it down to file statistics without NaN.
    """
    waiting = [expression]
    odd = []
    while waiting:
        node = waiting.pop()
        kind = _kind(node)
        inside = _all(node.children())
        if kind == "Cast":
            casts = jvm.org.apache.spark.sql.catalyst.expressions.Cast
            is_ansi = node.evalMode().toString() == "ANSI"
            is_total = not is_ansi or casts.canUpCast(inside[0].dataType(), node.dataType())
        else:
            is_total = kind in _TOTAL and not (kind in _TESTS and any(map(_is_fraction, inside)))
        if not is_total:
            odd.append(kind)
        waiting += inside
    return odd


def _is_fraction(node: Any) -> bool:
    return node.dataType().simpleString() in ("float", "double")


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _all(sequence: Any) -> list[Any]:
    """Converts a Scala sequence to a list."""
    return [sequence.apply(place) for place in range(sequence.size())]
