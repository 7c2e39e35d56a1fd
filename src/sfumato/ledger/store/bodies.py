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
    """A body as stored in its row.

    ``coding`` is empty for plain bytes, else a codec and the length.
    """

    data: bytes
    coding: str = ""


def pack(body: bytes, size: int, keep: Callable[[str, bytes], None]) -> Packed:
    """Encodes a body of at most ``size`` bytes; this public bound alone decides whether it goes
    outside.

    ``keep`` stores it outside under its name, durably or with the current transaction.

    Raises:
        WrongUse: it is longer than its bound.
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
    """Decodes a body; ``kept`` reads one that is stored outside its row, by name and length.

    If the body cannot be read, the result is empty bytes; the comparison with the digest of the
    answer, which follows, then fails.
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
    """Whether a name is a hexadecimal SHA-256, so that a forged row cannot refer to another
    file.
    """
    return len(name) == 64 and all(digit in "0123456789abcdef" for digit in name)


class BodyFiles:
    """The large bodies of a ledger file, in the folder ``<ledger>.bodies``: mode 0600, named by
    content.

    Guarantees:
        a large body is on disk before its row
    """

    def __init__(self, ledger: str) -> None:
        self.folder = Path(f"{ledger}.bodies")

    def keep(self, name: str, body: bytes) -> None:
        """Writes a body durably; an existing one is rewritten, since it may be incomplete.

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
        """A body by its name; empty if there is none of this name and length."""
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
