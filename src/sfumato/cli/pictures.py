# SPDX-License-Identifier: Apache-2.0
"""``sfumato pictures``: the pictures of a folder as rows of a Parquet file, all of one size."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sfumato.cli.language import say
from sfumato.cli.options import require_spared
from sfumato.engines.files import is_same
from sfumato.errors import WrongUse, shown
from sfumato.metadata.column import LONGEST_ARRAY

_MOST_PIXELS = 50_000_000
# The number of rows that are written at once.
_AT_ONCE = 1000
_SCHEMA = pa.schema(
    [("file", pa.string()), ("folder", pa.string()), ("picture", pa.list_(pa.uint8()))]
)


class Unread(Enum):
    """Why a file has no picture."""

    UNREADABLE = "unreadable"
    ANIMATED = "animated"
    LARGE = "above 50 million pixels"


@click.command("pictures")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option("--size", required=True, help="Height x width of each picture: 28x28.")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), help="A .parquet file."
)
def command(folder: str, *, size: str, output: str) -> None:
    """Write the pictures of FOLDER and of the folders in it as rows of a Parquet file; free.

    A row has the path of the file, its folder, and the picture in grey, as a list of numbers from 0
    to 255, row by row. A file that is no picture of 8 or 16 bits, is animated, or has more than 50
    million pixels has NULL in its place. What is written, and what this command says, is as private
    as the pictures.
    """
    height, width = _read_size(size)
    if Path(output).suffix.lower() != ".parquet":
        raise WrongUse(f"{shown(output)} is no file of rows.", allowed=".parquet")
    require_spared(output)
    try:
        images = import_module("PIL.Image")
    except ImportError:
        raise WrongUse(
            "Pillow is not installed.", remedy="pip install 'sfumato[pictures]'"
        ) from None
    counts: Counter[Unread | None] = Counter()
    rows: list[dict[str, Any]] = []
    with parquet.ParquetWriter(output, _SCHEMA) as writer:
        for path in _files(Path(folder), Path(output)):
            picture = read_picture(images, path, height, width)
            why = picture if isinstance(picture, Unread) else None
            counts[why] += 1
            name = _name(path.relative_to(folder))
            inside = name.rpartition("/")[0]
            rows.append({"file": name, "folder": inside, "picture": None if why else picture})
            if len(rows) == _AT_ONCE:
                writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
    say(f"wrote {output}: {counts.total():,} rows")
    if unreadable := counts[Unread.UNREADABLE]:
        say(f"note: NULL in {unreadable:,} rows: no picture that can be read")
    if animated := counts[Unread.ANIMATED]:
        say(f"note: NULL in {animated:,} rows: an animated picture")
    if large := counts[Unread.LARGE]:
        say(f"note: NULL in {large:,} rows: above 50 million pixels")


def read_picture(images: Any, path: Path, height: int, width: int) -> Any:
    """Returns the picture of a file in grey, as a flat array of bytes, or why there is none.

    ``images`` is the module PIL.Image.
    """
    try:
        with warnings.catch_warnings():
            # a picture may be larger than Pillow wants: its size is checked here
            warnings.simplefilter("ignore")
            with images.open(path) as image:
                if image.width * image.height > _MOST_PIXELS:
                    return Unread.LARGE
                if getattr(image, "is_animated", False):
                    return Unread.ANIMATED
                if image.mode in ("I", "F"):
                    # numbers of 32 bits, of which nobody says which is white
                    return Unread.UNREADABLE
                upright = import_module("PIL.ImageOps").exif_transpose(image)
                grey = _in_grey(images, upright)
                resized = grey.resize((width, height), images.Resampling.BILINEAR)
                return np.asarray(resized, np.uint8).ravel()
    except images.DecompressionBombError:
        return Unread.LARGE
    except Exception:
        return Unread.UNREADABLE


def _in_grey(images: Any, image: Any) -> Any:
    """Returns an image in 256 greys; of 16 bits the upper 8 are kept."""
    if image.mode.startswith("I;16"):
        return images.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert("L")


def _read_size(size: str) -> tuple[int, int]:
    """Returns height and width."""
    written = re.fullmatch(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,6})", size, re.ASCII)
    if written is None or int(written[1]) * int(written[2]) > LONGEST_ARRAY:
        raise WrongUse(
            f"{shown(size)} is no size.",
            allowed=f"height x width, at most {LONGEST_ARRAY:,} numbers: 28x28",
        )
    return int(written[1]), int(written[2])


def _files(folder: Path, output: Path) -> Iterator[Path]:
    """Yields the files below a folder, in order, but no hidden ones and not the output."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(where) / name
            if path.is_file() and not name.startswith(".") and not is_same(path, output):
                yield path


def _name(path: Path) -> str:
    """Returns a path with /, in characters that a Parquet file can hold."""
    return path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
