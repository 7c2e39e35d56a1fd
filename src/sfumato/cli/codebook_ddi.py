# SPDX-License-Identifier: Apache-2.0
"""Codebooks in DDI 2 (DDI Codebook): the ``<var>`` elements.

Source: ddialliance.org/Specification/DDI-Codebook/2.5. Elements that describe the data itself are
never read: ``sumStat`` (its least and greatest value) and ``catStat`` (the frequency of a value).
"""

import io
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sfumato.cli.codebook_entry import Entry, entry
from sfumato.errors import WrongUse


def described_by_ddi(path: Path) -> Iterator[tuple[str, Entry]]:
    """Yields the declaration of each variable: its range, its categories and its invalid codes.

    Raises:
        WrongUse: the file is not XML; or it has a document type, which could define entities.
    """
    for variable in _parsed(path.read_bytes()).iter("var"):
        name = variable.get("name")
        if name:
            yield name, _entry(variable)


def _parsed(document: bytes) -> Element:
    """The XML tree of a document, with namespaces removed from names."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, about: builder.start(_local(tag), about)
    parser.EndElementHandler = lambda tag: builder.end(_local(tag))
    parser.CharacterDataHandler = builder.data
    # without a document type there are no entities
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.ParseFile(io.BytesIO(document))
    except expat.ExpatError:
        raise WrongUse("A codebook that is no XML.", allowed="DDI Codebook 2") from None
    return builder.close()


def _refuse(*_: object) -> None:
    raise WrongUse(
        "A codebook with a document type (<!DOCTYPE>), which could define entities.",
        remedy="Remove that line from the XML.",
    )


def _local(tag: str) -> str:
    return tag.rpartition(":")[2]


def _entry(variable: Element) -> Entry:
    """What one variable declares."""
    values = {}
    missing = [item.get("VALUE", "") for item in variable.findall("invalrng/item")]
    for category in variable.findall("catgry"):
        value = (category.findtext("catValu") or "").strip()
        label = (category.findtext("labl") or "").strip()
        values[value] = label or value
        if category.get("missing") == "Y":
            missing.append(value)
    values.pop("", None)
    bounds: tuple[object, object] = (None, None)
    declared = variable.find("valrng/range")
    if declared is not None:
        bounds = (declared.get("min"), declared.get("max"))
    return entry(_kind(variable), bounds=bounds, values=values, missing=missing)


def _kind(variable: Element) -> str:
    """The type of a variable; empty if it is not stated."""
    form = variable.find("varFormat")
    if form is None:
        return ""
    if form.get("type") == "character":
        return "text"
    is_whole = variable.get("dcml") == "0" or variable.get("intrvl") == "discrete"
    return "integer" if is_whole else "real"
