# SPDX-License-Identifier: Apache-2.0
"""Reads the column names and types of a source, and the form of its first lines (RULES 24).

``sfumato init`` drafts a table from them.
"""

import csv
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import duckdb

from sfumato.cli.init_forms import (
    guess,
    has_decimal_comma,
    looks_like_values,
    thousands_of,
    without_thousands,
)
from sfumato.engines.files import is_sqlite, require_names
from sfumato.engines.sources import opened
from sfumato.errors import InvalidSource, WrongUse, shown
from sfumato.metadata.file_text import DELIMITERS
from sfumato.metadata.server import is_address, is_object
from sfumato.metadata.table import Table

# Of a CSV file no more than this is looked at.
_HEAD_BYTES = 64 * 1024
_HEAD_LINES = 200
_SUFFIXES = (".csv", ".parquet", ".xlsx")
_LOWER = "Do the names stand in a lower line: sfumato init --header-row 3."
_HAN = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
# Characters of the second level of GB 2312 are in hardly 1% of a text.
_RARE = b"\xd8\xa1"
_IN_A_LATIN_WORD = re.compile("(?<=[A-Za-z])([\u4e00-\u9fff])(?=[A-Za-z])")
_HANGUL = re.compile("[\uac00-\ud7a3]")
# So many different ones are hardly ever Chinese by chance: 40% of its common characters are not.
_KOREAN_SYLLABLES = 12
# A word of Cyrillic: small letters after a capital or none, or capitals alone.
_WORD = rb"(?<![\x80-\xff])(?:[%b]?[%b]+|[%b]+)(?![\x80-\xff])"
_CYRILLIC = {}
for _encoding_name, _capitals, _small in (
    ("cp1251", rb"\xa8\xc0-\xdf", rb"\xb8\xe0-\xff"),
    ("koi8-r", rb"\xb3\xe0-\xff", rb"\xa3\xc0-\xdf"),
):
    _CYRILLIC[_encoding_name] = re.compile(_WORD % (_capitals, _small, _capitals))
# The most frequent letters of Russian, which decide where words of either are words of both: those
# of small letters alone are capitals in the other encoding.
_FREQUENT = "оеаинт"
# So many letters of such words are hardly ever Chinese or Western by chance.
_CYRILLIC_LETTERS = 10
# Two or more kana, or common kanji, in Shift_JIS.
_KANA_AND_KANJI = re.compile(rb"(?:[\x81-\x97][\x40-\x7e\x80-\xfc]){2,}")
# The types of DuckDB and the declarations that they are.
_TYPES = {
    "integer": r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(\d+,0\)",
    "real": r"FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": r"TIMESTAMP[^\[]*",
    "array": r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\))\[\d*\]",
}
_NESTED = r"STRUCT|MAP|UNION|(?!.*(INT|INTEGER|FLOAT|DOUBLE|\))\[\d*\]$).*\]$"


@dataclass(frozen=True, slots=True)
class Columns:
    """The declarations that ``sfumato init`` derives for the columns of one source, by column name.

    ``known`` has the declarations that follow from names and types, ``guesses`` what the first
    lines suggest. ``options`` and ``guessed_options`` are the same for the table itself (its
    delimiter, for example). ``nested`` are columns of structures, which cannot be declared.
    """

    known: Mapping[str, Mapping[str, object]]
    guesses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    guessed_options: Mapping[str, str] = field(default_factory=dict)
    nested: Sequence[str] = ()


def sources_of(place: str) -> list[str]:
    """Returns the sources at a place: the place itself, or the files of a folder.

    A folder with only Parquet files is a single table if all have the same columns.

    Raises:
        WrongUse: a folder without files that can be read.
    """
    folder = Path(place)
    if is_address(place) or not folder.is_dir():
        return [place]
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)
    if not files:
        raise WrongUse(f"No table in {shown(place)}.", allowed="files " + ", ".join(_SUFFIXES))
    if all(path.suffix.lower() == ".parquet" for path in files):
        schemas = [list(columns_of(str(path)).known) for path in files]
        if all(schema == schemas[0] for schema in schemas):
            return [place]
    return [str(path) for path in files]


def columns_of(
    source: str, table: str | None = None, *, has_names: bool = False, header_row: int | None = None
) -> Columns:
    """Returns the columns of a file, of a folder of Parquet files, or of a database table.

    ``has_names``: the first line of CSV and Excel is a header, whatever it looks like.
    ``header_row``: the number of the line that has the names.

    Raises:
        InvalidSource: it cannot be read, or its first line does not name each column.
    """
    columns = _columns_of(source, table, header_row, has_names=has_names)
    if header_row is not None:
        columns = replace(columns, options={"header_row": header_row, **columns.options})
    is_file = not is_address(source) and Path(source).suffix.lower() in (".csv", ".xlsx")
    if is_file and not has_names and looks_like_values(columns.known):
        # the first person's values would become public names; not even the refusal has them
        raise InvalidSource(
            f"The first line of {Path(source).name!r} has numbers, dates or truth values.",
            allowed="a line with the names of the columns",
            remedy="Write one there. If these are names: sfumato init --header yes",
        )
    return columns


def _columns_of(
    source: str, table: str | None, header_row: int | None, *, has_names: bool
) -> Columns:
    path = Path(source)
    if not is_address(source) and path.suffix.lower() == ".csv":
        return _of_csv(path, header_row or 1, has_names=has_names)
    declared = Table(source, table=table, header_row=header_row)
    types, first_rows = _types(declared, source)
    guesses = {name: guess(values) for name, values in first_rows.items()}
    nested = [name for name, kind in types.items() if re.match(_NESTED, kind)]
    known: dict[str, dict[str, object]] = {}
    # SQLite gives each value a type of its own, and Excel each cell
    is_typed = path.suffix.lower() != ".xlsx" and not (path.is_file() and is_sqlite(path))
    for name, kind in types.items():
        if name not in nested:
            known[name] = _declared(kind) if is_typed else {}
    return Columns(known, guesses, nested=nested)


def _types(declared: Table, source: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The DuckDB type of each column of an opened source, and the strings of the first rows of a
    sheet.
    """
    name = Path(source).stem if not is_address(source) else "table"
    with (
        tempfile.TemporaryDirectory(prefix="sfumato-") as folder,
        closing(duckdb.connect()) as connection,
    ):
        item = opened(connection, name, declared, folder=Path(folder))
        if item.served is not None:
            return item.served.types, {}
        if item.frame is not None:
            connection.register(item.sql.strip('"'), item.frame)
        described = connection.execute(f"DESCRIBE SELECT * FROM {item.sql}").fetchall()
        types = {row[0]: row[1] for row in described}
        if item.frame is None:
            return types, {}
        rows = connection.execute(f"SELECT * FROM {item.sql} LIMIT {_HEAD_LINES}").fetchall()
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    cells = (["" if cell is None else str(cell) for cell in column] for column in columns)
    return types, dict(zip(types, cells, strict=True))


def _declared(kind: str) -> dict[str, object]:
    """The declaration for a DuckDB type; empty for strings, which may be categories."""
    for declared, pattern in _TYPES.items():
        if re.fullmatch(pattern, kind):
            return {"type": declared}
    return {}


def _of_csv(path: Path, header_row: int, *, has_names: bool) -> Columns:
    """The columns of a CSV file, from its header and the form of the next lines."""
    head = _head(path)
    encoding = _encoding(head)
    line = b"".join(head.split(b"\n")[header_row - 1 : header_row])
    text = head.decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = text.splitlines()[header_row - 1 :]
    delimiter = max(DELIMITERS, key=(lines[0] if lines else "").count)
    header, *rows = _rows(lines, delimiter)
    _require_names(path, header, lines[1:], header_row, has_names=has_names)
    options = {} if delimiter == "," else {"delimiter": delimiter}
    guessed: dict[str, str] = {}
    if encoding != "utf-8":
        # names that are not ASCII are read in it already; else only the lines suggest it
        of_names = encoding == "utf-16" or not line.isascii()
        (options if of_names else guessed)["encoding"] = encoding
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    signs, guesses = _guesses(dict(zip(header, columns, strict=True)), delimiter)
    return Columns({name: {} for name in header}, guesses, options, guessed | signs)


def _require_names(
    path: Path, header: Sequence[str], below: Sequence[str], row: int, *, has_names: bool
) -> None:
    """Refuses a line that does not name each column once. The refusal has places, no names: they
    may be values of a person.
    """
    if not header:
        raise InvalidSource(
            f"{path.name!r} has no line {row}.", allowed="a line with the names of the columns"
        )
    unnamed = [
        place for place, name in enumerate(header, 1) if not (name.strip() and name.isprintable())
    ]
    if unnamed:
        raise InvalidSource(
            f"Line {row} of {path.name!r} has no name for column {unnamed[0]} of {len(header)}.",
            remedy=f"Write a name for each column there. {_LOWER}",
        )
    fields = _fields(below)
    if len(header) == 1 and fields > 1 and not has_names:
        raise InvalidSource(
            f"Line {row} of {path.name!r} names one column, "
            f"and the lines below have {fields} fields.",
            remedy=f"{_LOWER} Is it one column: sfumato init --header yes",
        )
    require_names(path.stem, path.name, header)


def _fields(lines: Sequence[str]) -> int:
    """The number of fields that most of the lines have, by the delimiter that gives most; 1 if they
    differ.
    """
    counts = [1]
    for delimiter in DELIMITERS:
        for signs, times in Counter(line.count(delimiter) for line in lines).most_common(1):
            counts.append(signs + 1 if 2 * times > len(lines) > 1 else 1)
    return max(counts)


def _guesses(
    cells: Mapping[str, Sequence[str]], delimiter: str
) -> tuple[dict[str, str], dict[str, Mapping[str, str]]]:
    """The number format, and the declaration of each column, that cells suggest."""
    signs = {}
    thousands = thousands_of(cells.values(), delimiter)
    if thousands:
        signs["thousands"] = thousands
    plain = {name: without_thousands(values, thousands) for name, values in cells.items()}
    if delimiter != "," and any(map(has_decimal_comma, plain.values())):
        signs["decimal"] = ","
    return signs, {name: guess(values) for name, values in plain.items()}


def _head(path: Path) -> bytes:
    """The first complete lines of a file."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InvalidSource(f"{shown(str(path))} cannot be read ({error.strerror}).") from None
    if len(head) < _HEAD_BYTES or head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return head
    return head[: head.rfind(b"\n") + 1]


def _encoding(head: bytes) -> str:
    """The first encoding that can decode the bytes."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        head.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        pass
    cyrillic = _cyrillic_encoding(head)
    if cyrillic is not None:
        return cyrillic
    if _is_east_asian(head):
        return "cp949" if _is_korean(head) else "gb18030"
    return "cp932" if _is_japanese(head) else "cp1252"


def _is_east_asian(head: bytes) -> bool:
    """Whether bytes are rather Chinese (or Korean) than Western.

    Of Chinese its characters, whose bytes are both beyond ASCII; letters of Western Europe stand
    alone. Two of those beside each other ("größe", "AÇÃO") are a rare character, or one inside a
    Latin word.
    """
    chinese = head.decode("gb2312", errors="replace")
    characters = _HAN.findall(chinese)
    in_words = set(_IN_A_LATIN_WORD.findall(chinese))
    western = sum(
        character in in_words or character.encode("gb2312") >= _RARE for character in characters
    )
    return len(characters) > 4 * chinese.count("\ufffd") and len(characters) >= 2 * western


def _cyrillic_encoding(head: bytes) -> str | None:
    """The encoding of Cyrillic whose words bytes are; None if they are rather pairs of bytes of
    Chinese, which mix the places of capitals and of small letters, or Western letters, which stand
    alone.
    """
    scores = {}
    for encoding, pattern in _CYRILLIC.items():
        letters = sum(len(word) for word in pattern.findall(head) if len(word) > 1)
        if letters >= max(_CYRILLIC_LETTERS, 0.8 * sum(byte > 0x7F for byte in head)):
            text = head.decode(encoding, errors="replace").lower()
            scores[encoding] = letters, sum(map(text.count, _FREQUENT))
    return max(scores, key=lambda encoding: scores[encoding], default=None)


def _is_korean(head: bytes) -> bool:
    """Whether bytes are rather Korean than Chinese, some of whose characters have those bytes."""
    text = head.decode("cp949", errors="replace")
    syllables = _HANGUL.findall(text)
    others = sum(not letter.isascii() for letter in text) - len(syllables)
    return len(set(syllables)) >= _KOREAN_SYLLABLES and len(syllables) > 4 * others


def _is_japanese(head: bytes) -> bool:
    """Whether bytes are rather Shift_JIS than Western, whose quotes and dashes stand alone."""
    rest = _KANA_AND_KANJI.sub(b"", head)
    return len(head) - len(rest) > 8 * sum(byte > 0x7F for byte in rest)


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The header, and the next rows with as many fields."""
    try:
        read = list(islice(csv.reader(lines, delimiter=delimiter), _HEAD_LINES))
    except csv.Error:
        read = []
    header = read[0] if read else []
    return [header, *(row for row in read[1:] if len(row) == len(header))]


def table_name(source: str, table: str | None = None) -> str:
    """Returns the table name for a source, as questions use it.

    >>> table_name("data/2024 Visits.csv"), table_name("postgresql://db/clinic", "Patients")
    ('t_2024_visits', 'patients')
    """
    name = re.sub(r"\W+", "_", (table or Path(source).stem).lower()).strip("_")
    if not name or name[0].isdigit():
        name = f"t_{name}"
    return name


def place_in(source: str, folder: Path) -> str:
    """Returns a path relative to ``folder`` if it is inside, else absolute; addresses unchanged."""
    if is_address(source) or is_object(source):
        return source
    path = Path(source).absolute()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
