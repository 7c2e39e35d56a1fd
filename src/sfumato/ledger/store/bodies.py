# SPDX-License-Identifier: Apache-2.0
"""How the bytes of answers and instalments are stored: plain, compressed, or outside their row.

A body whose public size bound is at most ``LARGEST`` is in its row, compressed with zstd if that
makes it smaller. A larger one is stored outside under its SHA-256, before the row that names it is
committed: in a file beside SQLite, in chunks of a table in PostgreSQL.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from sfumato.errors import LedgerUnavailable, WrongUse, shown
from sfumato.ledger.store.open_mark import sync_folder

# In bytes: 64 MiB.
LARGEST = 64 << 20
# Shorter bodies are stored as they are: compressing them saves less than a page.
_WORTH = 4096
_ZSTD, _LARGE = "zstd", "large"


class Packed(NamedTuple):
    """The stored encoding of an answer's or instalment's bytes in a row.

    ``coding`` is empty for plain bytes, else the name of a codec and the length.
    """

    data: bytes
    coding: str = ""


def pack(body: bytes, size: int, keep: Callable[[str, bytes], None]) -> Packed:
    """Encodes a body (the bytes of an answer or instalment) for its row in the ledger.

    Its public size bound alone decides whether it is stored outside the row.

    ``size`` is this bound in bytes. ``keep`` stores a body outside the row under its name, durably
    or within the current transaction.

    Raises:
        WrongUse: the body is longer than ``size``.
    """
    if len(body) > size:
        raise WrongUse(
            f"A body of {len(body)} bytes.",
            allowed=f"at most the {size} bytes that were said beforehand",
        )
    if size > LARGEST:
        name = hashlib.sha256(body).hexdigest()
        keep(name, body)
        return Packed(name.encode(), f"{_LARGE} {len(body)}")
    if len(body) < _WORTH:
        return Packed(body)
    smaller = bytes(pa.compress(body, codec=_ZSTD, asbytes=True))
    return Packed(smaller, f"{_ZSTD} {len(body)}") if len(smaller) < len(body) else Packed(body)


def unpack(packed: Packed, kept: Callable[[str, int], bytes]) -> bytes:
    """Decodes a stored answer or instalment; ``kept`` reads a body stored outside its row, by name
    and length.

    If the body cannot be read, the result is empty. Then the comparison with the digest of the
    answer, which follows, fails.
    """
    word, _, length = packed.coding.partition(" ")
    if not word:
        return packed.data
    try:
        size = int(length)
        if word == _LARGE:
            return kept(packed.data.decode(), size)
        if word != _ZSTD or not 0 <= size <= LARGEST:
            return b""
        return bytes(pa.decompress(packed.data, decompressed_size=size, codec=_ZSTD, asbytes=True))
    except (ValueError, OSError):
        return b""


def is_name(name: str) -> bool:
    """Whether a name is a hexadecimal SHA-256: no forged row can refer to another file."""
    return len(name) == 64 and all(digit in "0123456789abcdef" for digit in name)


class BodyFiles:
    """The files of large answers beside a ledger file, in the folder ``<ledger>.bodies``.

    They have mode 0600 and are named by the SHA-256 of their content.

    Guarantees:
        a large body is on disk before its row
    """

    def __init__(self, ledger: str) -> None:
        self.folder = Path(f"{ledger}.bodies")

    def keep(self, name: str, body: bytes) -> None:
        """Writes a body (an answer's bytes) to its file durably, even if an incomplete file exists.

        Raises:
            LedgerUnavailable: the disk refuses it.
        """
        fresh = ""
        try:
            self._make_folder()
            descriptor, fresh = tempfile.mkstemp(suffix=".new", dir=self.folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            Path(fresh).replace(self.folder / name)
            sync_folder(self.folder / name)
        except OSError as error:
            with suppress(OSError):
                Path(fresh).unlink()
            raise LedgerUnavailable(
                f"The folder {shown(str(self.folder))} cannot be written ({error.strerror}).",
                remedy="Check the disk.",
            ) from None

    def kept(self, name: str, size: int) -> bytes:
        """Returns the stored body with a name; empty if no file has this name and length."""
        try:
            path = self.folder / name
            return path.read_bytes() if is_name(name) and path.stat().st_size == size else b""
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise LedgerUnavailable(
                f"A file in {shown(str(self.folder))} cannot be read ({error.strerror}).",
                remedy="Check the disk.",
            ) from None

    def clear_unfinished(self) -> None:
        """Removes temporary files left by a crash."""
        for unfinished in self.folder.glob("*.new"):
            with suppress(OSError):
                unfinished.unlink()

    def copy_to(self, ledger: str) -> None:
        """Copies all bodies beside another ledger file, durably.

        Raises:
            OSError: the disk refuses it.
        """
        other = BodyFiles(ledger)
        if self.folder.is_dir():
            for body in sorted(self.folder.iterdir()):
                if is_name(body.name):
                    other.keep(body.name, body.read_bytes())

    def remove(self) -> None:
        """Removes the folder and its content."""
        if self.folder.is_dir():
            for body in self.folder.iterdir():
                body.unlink()
            self.folder.rmdir()

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700)
            sync_folder(self.folder)
