# SPDX-License-Identifier: Apache-2.0
"""Copies an object of an S3 store to a private file when its table is opened.

The copy is then read like any file. Before each charge the tag of the object is compared with that
of the copy. Credentials come from the environment; messages of the store are not passed on.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sfumato.errors import InvalidSource
from sfumato.metadata.server import StoredObject
from sfumato.noise.entropy import token

# The number of bytes that are copied at a time, and how long the store is waited for, in seconds.
_CHUNK = 8 * 2**20
_CONNECT, _WAIT = 10.0, 60.0
_TAG = ("ETag", "Content-Length", "Last-Modified")
_READ = (".parquet", ".csv")
_TRUTHS = {"true": True, "false": False}

# What identifies the content of an object, without reading it.
Tag: TypeAlias = tuple[bytes | None, ...]


class _StoreFailed(OSError):
    """The store does not answer, or has no such object; the message does not say why."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The private local copy of an object in an S3 store, and the tag (version) that the object had
    when it was copied.
    """

    source: StoredObject
    path: Path
    tag: Tag
    system: Any = field(repr=False, compare=False)

    @property
    def is_current(self) -> bool:
        """Whether the store answers and the object still has the tag of the copy."""
        try:
            return _tag(self.system, self.source) == self.tag
        except _StoreFailed:
            return False

    @contextmanager
    def named(self) -> Iterator[None]:
        """Context manager in which InvalidSource errors name the object's address in place of the
        path of its local copy.
        """
        try:
            yield
        except InvalidSource as refused:
            problem = refused.problem.replace(str(self.path), repr(self.source))
            raise InvalidSource(
                problem.replace(self.path.name, Path(self.source.name).name),
                allowed=refused.allowed,
                remedy=refused.remedy,
            ) from None


def copied(
    name: str,
    source: StoredObject,
    folder: Path,
) -> Copy:
    """Copies an object of an S3 store to a new file in a private folder, and returns the copy.

    Raises:
        InvalidSource: it is neither Parquet nor CSV, the store does not answer or refuses, the copy
            cannot be written, or the object changed meanwhile.
    """
    suffix = Path(source.name).suffix.lower()
    if suffix not in _READ:
        raise InvalidSource(
            f"Table {name!r}: {source!r} is neither .parquet nor .csv.",
            allowed="one object, Parquet or CSV",
            remedy="A prefix of several objects is not read: name one, or copy them to a folder.",
        )
    copy = None
    with suppress(_StoreFailed):
        copy = _copied(source, folder / f"{token()}{suffix}")
    if copy is None:
        raise InvalidSource(
            f"Table {name!r}: {source!r} cannot be read.",
            allowed="an object that this user may read; options: endpoint=https://host:port, "
            "region=name, anonymous=true",
            remedy="Check bucket, key, region and endpoint; AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or a profile, hold the keys.",
        )
    if not copy.is_current:
        raise InvalidSource(
            f"Table {name!r}: {source!r} changed while it was copied.",
            remedy="Open it again when nobody writes.",
        )
    return copy


def _copied(source: StoredObject, path: Path) -> Copy:
    with _failing():
        system = _system(source)
        tag = _tag(system, source)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file, system.open_input_stream(source.name) as stream:
            while chunk := stream.read(_CHUNK):
                file.write(chunk)
        return Copy(source, path, tag, system)


def _tag(system: Any, source: StoredObject) -> Tag:
    with _failing(), system.open_input_file(source.name) as file:
        facts = file.metadata()
    return tuple(facts.get(name) for name in _TAG)


def _system(source: StoredObject) -> Any:
    """Returns the file system of Arrow for the store of an object."""
    from pyarrow import fs  # objects of a store need it, files do not

    options = source.options
    settings: dict[str, Any] = {"connect_timeout": _CONNECT, "request_timeout": _WAIT}
    if "anonymous" in options:
        settings["anonymous"] = _TRUTHS[options["anonymous"]]
    if "region" in options:
        settings["region"] = options["region"]
    endpoint = source.endpoint
    if endpoint is not None:
        scheme, _, host = endpoint.partition("://")
        settings["scheme"] = scheme
        settings["endpoint_override"] = host
    return fs.S3FileSystem(**settings)


@contextmanager
def _failing() -> Iterator[None]:
    """Converts every failure of the store to ``_StoreFailed``."""
    failed = False
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, NotImplementedError):
        failed = True
    if failed:
        # outside the handler: a message of the store may quote a key
        raise _StoreFailed
