# SPDX-License-Identifier: Apache-2.0
"""Reads codebooks, which declare the columns of a data set, for ``sfumato init``.

They state types, bounds, values, labels and codes of missing values. Each format has a module.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from sfumato.cli.codebook_csv import described_by_csv
from sfumato.cli.codebook_ddi import described_by_ddi
from sfumato.cli.codebook_entry import Entry
from sfumato.cli.codebook_json import described_by_json
from sfumato.cli.codebook_labels import described_by_labels
from sfumato.errors import WrongUse, shown

Reader: TypeAlias = Callable[[Path], Iterator[tuple[str, Entry]]]
_READERS: Mapping[str, Reader] = {
    ".json": described_by_json,
    ".xml": described_by_ddi,
    ".csv": described_by_csv,
    ".sav": described_by_labels,
    ".dta": described_by_labels,
}


def read_codebook(paths: Iterable[str]) -> dict[str, Entry]:
    """Returns the declarations of all columns in codebooks, as keys and values of a TOML file.

    A codebook is JSON (Frictionless, CSVW), DDI XML, CSV, .sav or .dta, by its file ending.

    Raises:
        WrongUse: another ending, a file that cannot be read, or two codebooks that contradict.
    """
    described: dict[str, Entry] = {}
    for path in paths:
        for name, entry in _read(Path(path)):
            known = described.setdefault(name, entry)
            if known != entry:
                raise WrongUse(
                    f"Column {name!r} is described in two ways by the codebooks.",
                    remedy="Name one codebook, and fill the other places by hand.",
                )
    return described


def _read(path: Path) -> list[tuple[str, Entry]]:
    """The declarations of one codebook; an error does not quote the content of the file."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise WrongUse(f"A codebook {shown(str(path))}.", allowed=", ".join(_READERS))
    try:
        entries = list(reader(path))
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise WrongUse(
            f"The codebook {shown(str(path))} cannot be read ({why}).",
            allowed="Frictionless or CSVW JSON, DDI 2 XML, CSV of name and values, .sav, .dta",
        ) from None
    if not entries:
        raise WrongUse(f"The codebook {shown(str(path))} describes no column.")
    return entries
