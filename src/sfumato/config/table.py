# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[tables.NAME]`` of a ``sfumato.toml``: a table, its unit and its columns.

``load`` calls it for every table.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato.config.named_section import require_table
from sfumato.config.near_names import near
from sfumato.config.section import Key, as_is, placed, read, stated, text
from sfumato.errors import InvalidConfig, shown
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.server import is_address, path_of
from sfumato.metadata.side_file import required_text
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.metadata.tokens import Tokens
from sfumato.privacy.unit import AUTO, Edge, Node, Unit

# Beside the text of a column.
TOKENS = (
    Key("stop", as_is, '["the", "a"]', "words that are left out: a list, or a file of lines", ()),
    Key("dictionary", as_is, '"words.txt"', "words of scripts without spaces: as stop", ()),
    Key("longest", as_is, "10000", "the characters of a text that are read", 10_000),
    Key("most", as_is, "1000", "the tokens of a text that are kept", 1_000),
)


def _or_auto(value: Any) -> Any:
    """Reads a limit: a number, or "auto" for a limit that is learnt privately."""
    return AUTO if value == AUTO.value else value


TABLE = (
    Key("source", text, '"people.csv"', "a file, a folder, a pattern, or the address of a server"),
    Key("unit", as_is, '{column = "person_id"}', "without it each row is one unit", None),
    Key("columns", as_is, '{job = {type = "text"}}', "what questions can read, by name", {}),
    Key("size", as_is, "27253", "the number of rows, only if it is published already", None),
    Key("public", as_is, "true", "a table that is about nobody", None),
    Key("table", as_is, '"people"', "its name in a database", None),
    Key("delimiter", as_is, '";"', "what separates the fields of a CSV file", None),
    Key("encoding", as_is, '"gbk"', "of a CSV file that is not UTF-8", None),
    Key("decimal", as_is, '","', "the sign of the fraction in numbers", None),
    Key("thousands", as_is, '"."', "the sign between groups of three digits", None),
    Key("sheet", as_is, '"Data 2024"', "the sheet of an Excel file; by default the first", None),
    Key("header_row", as_is, "3", "the line that names the columns", None),
    Key("skip_rows", as_is, "2", "the same: how many lines are above it", None),
)
UNIT = (
    Key("column", as_is, '"person_id"', "the column that says whom a row is about"),
    Key("max_rows", _or_auto, "1", "how many rows of one person count in one group", None),
    Key("max_groups", _or_auto, "1", "in how many groups one person counts", None),
    Key("max_rows_total", _or_auto, '"auto"', "how many rows of one person count in all", None),
    Key(
        "via", as_is, '"visits.patient"', "the column of another table that says whose it is", None
    ),
    Key("key", as_is, '"visit_id"', "what matches there; by default the same name", None),
    Key("name", as_is, '"patient"', "what the unit is called; by default its column", None),
    Key("spellings_apart", as_is, "true", "each spelling of an id is a unit", default=False),
    Key("unordered", as_is, "true", "two columns name one unit in either order", default=False),
)
EDGE = (
    Key("edge", as_is, '["a", "b"]', "the two columns of a table of edges, each of them a unit"),
    Key("name", as_is, '"tie"', "what the unit is called; by default its columns", None),
    Key("spellings_apart", as_is, "true", "each spelling of an id is a unit", default=False),
)
NODE = (
    Key("node", as_is, '["a", "b"]', "the two columns of a table of edges; a person is the unit"),
    Key("of", as_is, '"people"', "the private table that lists the persons"),
)
_LOWER = "the least value that is possible, whatever the data holds"
_UPPER = "the greatest value that is possible, whatever the data holds"
_VALUES = '["..."]: every possible value, also those that nobody has; or {"1" = "label"}'
_ORDER = '"%d/%m/%Y" or "%m/%d/%Y": which comes first, the form does not tell'
_NUMBERS = (Key("lower", as_is, "0", _LOWER), Key("upper", as_is, "120", _UPPER))
_DATES = (
    Key("lower", as_is, '"1900-01-01"', _LOWER),
    Key("upper", as_is, '"2026-12-31"', _UPPER),
)
_STEP = Key("step", as_is, '"0.25"', "values are rounded to multiples of it", None)
_CLIP = Key("clip", _or_auto, "200000", "the largest value that sums and means keep", None)
_FORMAT = Key("format", as_is, '"%d/%m/%Y"', _ORDER, None)
_TIMES = Key("format", as_is, '"%d/%m/%Y %H:%M"', _ORDER.replace("%Y", "%Y %H:%M"), None)
_TOKENS = Key("tokens", as_is, "{most = 500}", "how mining and models split the text", None)
_MISSING = Key("missing", as_is, '["N", "-"]', "what stands for no value", None)
# The keys of a column of each type, beside the type.
COLUMNS: Mapping[str, tuple[Key, ...]] = {
    "integer": (*_NUMBERS, _CLIP, _MISSING),
    "real": (*_NUMBERS, _STEP, _CLIP, _MISSING),
    "category": (Key("values", as_is, '["F", "M"]', _VALUES), _MISSING),
    "boolean": (
        Key("true", as_is, '"yes"', "what stands for true", None),
        Key("false", as_is, '"no"', "what stands for false", None),
        _MISSING,
    ),
    "date": (*_DATES, _FORMAT, _MISSING),
    "timestamp": (
        *_DATES,
        Key("zone", as_is, '"Asia/Tokyo"', "the time zone of its values; by default UTC", None),
        Key("step", as_is, "60", "values are rounded to so many seconds", None),
        _TIMES,
        _MISSING,
    ),
    "text": (_MISSING, _TOKENS),
    "array": (Key("shape", as_is, "[28, 28]", "how many numbers, by rows"), *_NUMBERS, _STEP),
}
_TYPES: Mapping[str, Callable[..., ColumnType]] = {
    "integer": Integer,
    "real": Real,
    "boolean": Boolean,
    "date": Date,
    "timestamp": Timestamp,
    "text": Text,
    "array": Array,
}


def read_table(form: Any, place: str, folder: Path) -> Table:
    """Returns the table that a TOML value declares.

    ``place`` is its dotted name for errors; ``folder`` is that of the file.

    Raises:
        InvalidConfig: a key is unknown or missing, or its value is refused.
    """
    form = stated(read(form, place, TABLE))
    columns = {}
    for name, column in require_table(form.pop("columns"), f"{place}.columns").items():
        columns[name] = read_column(column, f"{place}.columns.{name}", folder)
    source = form.pop("source")
    unit = None
    if "unit" in form:
        unit = _read_unit(form.pop("unit"), f"{place}.unit")
    with placed(place):
        return Table(file_or_server(path_of(source) or source, folder), unit, columns, **form)


def read_column(form: object, place: str, folder: Path = Path()) -> ColumnType:
    """Returns the type of a column that a TOML value declares; ``place`` is its name for errors.

    Files of words are looked for in ``folder``.

    Raises:
        InvalidConfig: a key is unknown or missing, or its value is refused.

    >>> read_column({"type": "integer", "lower": 0, "uper": 9}, "tables.people.columns.age")
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidConfig: tables.people.columns.age: unknown key 'uper'.
    Allowed: lower, upper, clip, missing
    What to do: Did you mean upper?
    """
    declared = dict(require_table(form, place))
    kind = declared.pop("type", None)
    if not isinstance(kind, str) or kind not in COLUMNS:
        raise InvalidConfig(
            f"{place}: type = {shown(kind)}.",
            allowed=", ".join(COLUMNS),
            remedy=near(kind, COLUMNS) or 'type = "integer"',
        )
    arguments = stated(read(declared, place, COLUMNS[kind]))
    if "tokens" in arguments:
        arguments["tokens"] = _read_tokens(arguments["tokens"], f"{place}.tokens", folder)
    with placed(place):
        if kind == "category":
            return Category(arguments.pop("values"), **arguments)
        return _TYPES[kind](**arguments)


def file_or_server(named: str, folder: Path) -> str | Path:
    """Returns a data source: a server's address unchanged, a file's path made relative to
    ``folder``.
    """
    return named if is_address(named) else folder / named


def _read_tokens(form: object, place: str, folder: Path) -> Tokens:
    """Reads how a text is split; lists of words may stand in files of one word a line."""
    arguments = read(form, place, TOKENS)
    with placed(place):
        for name in ("stop", "dictionary"):
            if isinstance(arguments[name], str):
                arguments[name] = _read_words(folder / arguments[name])
        return Tokens(**arguments)


def _read_words(path: Path) -> list[str]:
    """Reads a file of one word a line."""
    lines = required_text(path, "a word a line").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _read_unit(form: object, place: str) -> Unit | Node:
    if isinstance(form, Mapping) and "edge" in form:
        arguments = read(form, place, EDGE)
        first, second = _two_columns(arguments.pop("edge"), f"{place}.edge")
        with placed(place):
            return Edge(first, second, **arguments)
    if isinstance(form, Mapping) and "node" in form:
        arguments = read(form, place, NODE)
        first, second = _two_columns(arguments.pop("node"), f"{place}.node")
        with placed(place):
            return Node(first, second, **arguments)
    arguments = read(form, place, UNIT)
    with placed(place):
        return Unit(**arguments)


def _two_columns(columns: object, place: str) -> tuple[Any, Any]:
    """Returns the two columns of the ends of an edge."""
    if not isinstance(columns, list) or len(columns) != 2:
        raise InvalidConfig(f"{place} = {shown(columns)}.", allowed='two columns: ["a", "b"]')
    first, second = columns
    return first, second
