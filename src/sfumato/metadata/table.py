# SPDX-License-Identifier: Apache-2.0
"""Tables: where the data is stored, which unit each row belongs to, and what its columns hold."""

import os
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field, fields, replace
from pathlib import Path

from sfumato.errors import InvalidDeclaration, WrongUse, shown, without_secrets
from sfumato.metadata.column import Column, ColumnType
from sfumato.metadata.file_text import (
    Numerals,
    encoding_named,
    header_below,
    numerals_of,
    require_csv_text,
    require_sheet,
)
from sfumato.metadata.server import (
    POSTGRES,
    SCHEMES,
    Server,
    StoredObject,
    is_address,
    is_object,
    is_server,
    path_of,
    scheme_of,
)
from sfumato.privacy.unit import Node, Unit

# Of which files an option is, and what such a file is called.
_OF_FILES = {
    "delimiter": (".csv",),
    "encoding": (".csv",),
    "decimal": (".csv",),
    "thousands": (".csv",),
    "sheet": (".xlsx",),
    "header_row": (".csv", ".xlsx"),
}
_KINDS = {".csv": "CSV", ".xlsx": "Excel"}
# Last components of patterns that match everything in a folder.
_ALL_OF_A_FOLDER = ("*", "**", "*.parquet")


@dataclass(frozen=True, slots=True)
class _Undisclosed:
    """Placeholder for the source of a table that must not be shown; it shows only the type."""

    kind: str

    def __repr__(self) -> str:
        return f"<{self.kind}>"


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A declared table.

    Its ``repr`` shows the declarations, and of the source only its place or type.

    Args:
        source: the path of a Parquet, CSV or Excel file, of a folder of Parquet files, or a glob
            pattern ("events/2024-*.parquet"); or anything that Arrow can read (a pyarrow, pandas or
            polars table, a DuckDB relation); or a Parquet or CSV file in an S3 store
            ("s3://clinic/people.parquet"); or, with ``table``, a DuckDB or SQLite file ("shop.db",
            "sqlite:///shop.db"), or the address of a PostgreSQL, MySQL or MariaDB server
            ("postgresql://host/clinic", "mysql://host/clinic"), whose password is never shown. CSV
            values and Hive-style folder names ("year=2024") are strings that are converted as the
            columns declare.
        unit: the privacy unit; None: each row is one unit.
        columns: the declared columns. Other columns do not exist for questions.
        size: the number of rows, if it is public; a reference for relative errors.
        public: the table is about nobody (products, a calendar). It can be joined and is not
            protected: answers may show its content.
        table: the name of the table in a DuckDB or SQLite file, or on a server.
        delimiter: what separates the fields of a CSV file: "," (the default), ";", "|" or a tab.
        encoding: of a CSV file: "utf-8" (the default), "gb18030", "cp1252" and others, in any
            spelling that Python knows. If it is declared, a field with a byte that does not decode
            is missing; if it is not, such a file is refused.
        decimal: the sign of the fraction in numbers of a CSV file: "." (the default) or ",".
        thousands: the sign between groups of three digits there: ".", ",", " " or "'".
        sheet: the sheet of an Excel file; its first one if None.
        header_row: the number of the row that names the columns there, or of the line in a CSV
            file; rows above it are not read; 1 if None.
        skip_rows: the same as the number of rows above the names: header_row less 1.

    Guarantees:
        a table shows nothing of its source that is not declared

    >>> from sfumato.metadata.column import Integer
    >>> Table("adult.parquet", columns={"age": Integer(17, 90)}).column("age")
    Column(name='age', type=Integer(17, 90))
    """

    source: object
    unit: Unit | Node | None = None
    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    size: int | None = None
    public: bool = False
    table: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    skip_rows: InitVar[int | None] = None

    def __post_init__(self, skip_rows: int | None) -> None:
        if skip_rows is not None:
            object.__setattr__(self, "header_row", header_below(skip_rows, self.header_row))
        if self.unit is not None and not isinstance(self.unit, Unit | Node):
            raise InvalidDeclaration(
                f"unit={shown(self.unit)}.",
                allowed='sf.Unit("person_id", max_rows=1), sf.Edge("a", "b"), sf.Node("a", "b", '
                'of="people"), or None',
            )
        if not isinstance(self.public, bool):
            raise InvalidDeclaration(f"public={shown(self.public)}.", allowed="True or False")
        if self.public and self.unit is not None:
            raise InvalidDeclaration(
                "A public table with a unit.", allowed="public=True, or a unit", remedy="Drop one."
            )
        if not isinstance(self.columns, Mapping) or not all(
            isinstance(name, str) for name in self.columns
        ):
            raise InvalidDeclaration(
                "columns= that is no mapping of names.", allowed='{"age": sf.Integer(0, 120)}'
            )
        for name, kind in self.columns.items():
            if not isinstance(kind, ColumnType):
                raise InvalidDeclaration(
                    f"Column {name!r} is declared as {shown(kind)}.",
                    allowed="sf.Integer, sf.Real, sf.Date, sf.Timestamp, sf.Category, sf.Boolean, "
                    "sf.Text, sf.Array",
                )
        lowered = [name.lower() for name in self.columns]
        if len(set(lowered)) != len(lowered):
            raise InvalidDeclaration(
                "Two columns whose names differ only in case.", remedy="Rename one in the data."
            )
        if self.size is not None and (
            isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1
        ):
            raise InvalidDeclaration(
                f"size={shown(self.size)}.", allowed="a public number of rows, at least 1"
            )
        self._require_path()
        self._require_options()
        object.__setattr__(self, "columns", dict(self.columns))

    def _require_path(self) -> None:
        path = path_of(self.source)
        if path is not None:
            object.__setattr__(self, "source", path)
        elif isinstance(self.source, str) and is_server(self.source):
            object.__setattr__(self, "source", Server(self.source))
        elif isinstance(self.source, str) and is_object(self.source):
            object.__setattr__(self, "source", StoredObject(self.source))
        elif isinstance(self.source, str | Path):
            _require_no_address(self.source)
        if self.table is None:
            if path is not None or isinstance(self.source, Server):
                raise InvalidDeclaration(
                    "A database without the name of a table.", allowed='table="patients"'
                )
            return
        if not isinstance(self.table, str) or not self.table:
            raise InvalidDeclaration(
                f"table={shown(self.table)}.",
                allowed="the name of a table in a DuckDB or SQLite file, or on a server",
            )
        if not isinstance(self.source, str | Path | Server):
            raise InvalidDeclaration(
                f"table={self.table!r} of a source that is no path.",
                allowed='sf.Table("events.duckdb", table="events")',
            )

    def _require_options(self) -> None:
        # a spelling that is not supported is refused as it was written
        encoding = encoding_named(self.encoding) or self.encoding
        object.__setattr__(self, "encoding", encoding)
        require_csv_text(
            delimiter=self.delimiter,
            encoding=self.encoding,
            decimal=self.decimal,
            thousands=self.thousands,
        )
        require_sheet(self.sheet, self.header_row)
        if isinstance(self.source, _Undisclosed):
            return
        suffix = _suffix(self.source)
        for name, kinds in _OF_FILES.items():
            if getattr(self, name) is not None and suffix not in kinds:
                allowed = " or ".join(_KINDS[kind] for kind in kinds)
                raise InvalidDeclaration(
                    f"{name}= of a source that is no {allowed} file.", remedy="Leave it out."
                )
        if suffix == ".xlsx" and self.table is not None:
            raise InvalidDeclaration(
                f"table={self.table!r} of an Excel file.", remedy='Name its sheet: sheet="Sheet1".'
            )

    @property
    def reading(self) -> dict[str, str]:
        """The declared options of how a text file or Excel sheet is read (encoding and sheet, for
        example), as strings by name. Answers depend on them.

        >>> Table("people.csv", decimal=",", delimiter=";").reading
        {'decimal': ','}
        """
        declared = {name: getattr(self, name) for name in _OF_FILES if name != "delimiter"}
        return {name: str(value) for name, value in declared.items() if value is not None}

    @property
    def numerals(self) -> Numerals:
        """The decimal sign and the thousands separator of numbers that the table's file stores as
        text.
        """
        return numerals_of(self.decimal, self.thousands)

    @property
    def described(self) -> "Table":
        """A copy of the declarations in which the source is replaced by its type."""
        if isinstance(self.source, _Undisclosed):
            return self
        kind = type(self.source).__name__
        if isinstance(self.source, Server | StoredObject):
            kind = "server"
        elif isinstance(self.source, str | Path):
            kind = "path"
        return replace(self, source=_Undisclosed(kind), table=None, delimiter=None)

    @property
    def about(self) -> str:
        """The privacy unit of the table, as a canonical string."""
        if self.public:
            return "nobody: the table is public"
        return repr(self.unit) if self.unit else "each row is one unit"

    @property
    def place(self) -> str:
        """A canonical name of where the rows are stored; empty for data in memory.

        A folder is the same place as all its Parquet files. The content is not compared: a copy, a
        view, a hard link or another name of the same server is another place.
        """
        if isinstance(self.source, Server):
            return f"{self.source.place} {str(self.table).removeprefix('public.')}"
        if isinstance(self.source, StoredObject):
            return self.source.place
        if not isinstance(self.source, str | Path):
            return ""
        if is_address(self.source):
            return without_secrets(str(self.source))
        path = Path(os.path.realpath(self.source))
        while path.name in _ALL_OF_A_FOLDER:
            path = path.parent
        text = os.fsencode(path).decode("utf-8", "backslashreplace")
        return f"file {text} {self.table}" if self.table else f"file {text}"

    def column(self, name: str) -> Column | None:
        """Returns the declared column of this name, ignoring case; None if there is none."""
        for declared, kind in self.columns.items():
            if declared.lower() == name.lower():
                return Column(declared, kind)
        return None

    def __repr__(self) -> str:
        items = [_shown_source(self.source)]
        for declared in fields(self)[1:]:
            value = getattr(self, declared.name)
            if value or declared.name == "columns":
                items.append(f"{declared.name}={value!r}")
        return f"Table({', '.join(items)})"

    def __copy__(self) -> "Table":
        return self

    def __deepcopy__(self, memo: object) -> "Table":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        source = self.source
        is_path = isinstance(source, str | Path) and without_secrets(str(source)) == str(source)
        if not is_path and not isinstance(source, _Undisclosed):
            raise WrongUse(
                "A table with its rows, or with the address of a server, is not pickled.",
                remedy="Hand over a path, or the declarations: table.columns, table.unit.",
            )
        return Table, tuple(getattr(self, declared.name) for declared in fields(self))


def _require_no_address(source: str | Path) -> None:
    """Refuses an address that is unsupported or badly written; only its scheme is quoted."""
    scheme = scheme_of(source)
    if scheme and scheme not in SCHEMES:
        remedy = "Export the rows to Parquet or CSV, and give the path of the file."
        if scheme == "file":
            remedy = "Give the path without 'file://'."
        accepted = ", ".join(f"{name}://" for name in SCHEMES)
        raise InvalidDeclaration(
            f"An address of the scheme '{scheme}://', which is not supported.",
            allowed=f"a path, a frame, or an address that begins with {accepted}",
            remedy=remedy,
        )
    if scheme or (is_address(source) and "postgres" in str(source).lower()):
        raise InvalidDeclaration(
            "An address that is not written as one.",
            allowed=SCHEMES.get(scheme, POSTGRES),
        )


def _suffix(source: object) -> str:
    """Returns the extension of a file or an object, in small letters; empty for other sources."""
    if isinstance(source, StoredObject):
        source = source.name
    return Path(source).suffix.lower() if isinstance(source, str | Path) else ""


def _shown_source(source: object) -> str:
    if isinstance(source, str | Path):
        return shown(source)
    if isinstance(source, Server | StoredObject | _Undisclosed):
        return repr(source)
    return repr(_Undisclosed(type(source).__name__))
