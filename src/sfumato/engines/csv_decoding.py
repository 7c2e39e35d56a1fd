# SPDX-License-Identifier: Apache-2.0
"""Transcodes a CSV file to UTF-8 if it has another encoding, or bytes that do not decode.

``files.utf8_copy`` calls it once, when the file is opened. The copy is in the private folder of the
engine (mode 0600, in a folder of mode 0700) and is deleted with that folder. Transcoding needs
constant memory. A byte sequence that does not decode is replaced by one character, ``UNDECODED``,
so fields keep their positions; ``without_undecoded`` then reads each field with that character as
NULL.
"""

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sfumato.engines.duckdb_printer import quote, text

# A noncharacter of Unicode: reserved for use inside a program, so no text that is exchanged has it.
# A field that has it all the same is missing too. NULL is what an empty field is read as: the only
# value that no marker of ``missing=`` can equal.
UNDECODED = "\ufdd0"

_BLOCK = 2**20
# The widest character, in bytes; a newline is never a part of a longer one.
_FLUSH = "\n\n\n\n"
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BY_BYTE, _BY_UNIT = "sfumato.undecoded_byte", "sfumato.undecoded_unit"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A CSV file in UTF-8, and the number ``lost`` of byte sequences that could not be decoded from
    its declared encoding.

    ``path`` is the original file if it is UTF-8 already, without a byte order mark.
    """

    path: Path
    lost: int = 0


def decoded(
    path: Path,
    encoding: str,
    folder: Path,
) -> Decoded:
    """Returns a CSV file in UTF-8; writes a copy to the folder if the file is not in UTF-8.

    Raises:
        OSError: the file cannot be read, or the copy cannot be written.
        UnicodeError: UTF-16 without a byte order mark, which states the order of its bytes.

    Guarantees:
        what does not decode moves no field
    """
    if encoding == "utf-8" and _is_utf8(path):
        return Decoded(path)
    lost = 0
    descriptor, name = _new_file(folder)
    with path.open("rb") as file, os.fdopen(descriptor, "wb") as copy:
        for piece in _pieces(file, encoding):
            lost += piece.count(UNDECODED)
            copy.write(piece.encode("utf-8"))
    return Decoded(name, lost)


def without_undecoded(item: str, columns: Sequence[str]) -> str:
    """Returns a SQL FROM item of a CSV file in which each field with undecodable bytes (the
    character ``UNDECODED``) is NULL.

    The item uses TRY, because DuckDB draws no conclusions from its statistics (value_sql.proof.md).
    """
    marker = text(UNDECODED)
    read = []
    for column in columns:
        name = quote(column)
        read.append(f"TRY(CASE WHEN NOT contains({name}, {marker}) THEN {name} END) AS {name}")
    return f"(SELECT {', '.join(read)} FROM {item})"


def _new_file(folder: Path) -> tuple[int, Path]:
    """Creates a file that only its owner can read, under a name that is not in use."""
    number = sum(1 for _ in folder.glob("decoded-*.csv"))
    path = folder / f"decoded-{number}.csv"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), path


def _is_utf8(path: Path) -> bool:
    """Whether all of a file is UTF-8, without the character that marks what does not decode.

    It does not begin with a byte order mark.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
                return False
            file.seek(0)
            while block := file.read(_BLOCK):
                if UNDECODED in decoder.decode(block):
                    return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _pieces(file: BinaryIO, encoding: str) -> Iterator[str]:
    """Yields the text of a file piece by piece, without a byte order mark."""
    errors, flush = _BY_BYTE, _FLUSH
    if encoding == "utf-16":
        errors, flush = _BY_UNIT, ""
        if file.read(2) not in _BOMS:
            raise UnicodeError("UTF-16 without a byte order mark")
        file.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    is_first = True
    while block := file.read(_BLOCK):
        piece = decoder.decode(block)
        yield piece.removeprefix("\ufeff") if is_first else piece
        is_first = is_first and not piece
    # CPython's decoders of GBK and GB18030 drop what follows a byte that does not decode among the
    # last ones of a file; so the file is given an end, which is cut off again
    rest = decoder.decode(flush.encode("ascii")) + decoder.decode(b"", final=True)
    yield rest.removesuffix(flush)


def _undecoded_byte(error: UnicodeError) -> tuple[str, int]:
    """Replaces one byte: those after it may be a delimiter or the end of a line."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return UNDECODED, error.start + 1


def _undecoded_unit(error: UnicodeError) -> tuple[str, int]:
    """Replaces one unit of two bytes, or the last byte of a file."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return UNDECODED, min(error.start + 2, error.end)


codecs.register_error(_BY_BYTE, _undecoded_byte)
codecs.register_error(_BY_UNIT, _undecoded_unit)
