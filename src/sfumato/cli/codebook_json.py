# SPDX-License-Identifier: Apache-2.0
"""Codebooks in JSON: Frictionless Table Schema and data packages, and CSV on the Web (CSVW).

Sources: specs.frictionlessdata.io/table-schema; W3C, Metadata Vocabulary for Tabular Data (2015).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.cli.codebook_entry import Entry, entry
from sfumato.metadata.side_file import side_text

_TYPES = {
    "integer": "integer",
    "long": "integer",
    "int": "integer",
    "short": "integer",
    "byte": "integer",
    "nonNegativeInteger": "integer",
    "positiveInteger": "integer",
    "unsignedInt": "integer",
    "year": "integer",
    "number": "real",
    "decimal": "real",
    "double": "real",
    "float": "real",
    "boolean": "boolean",
    "date": "date",
    "datetime": "timestamp",
    "dateTime": "timestamp",
    "string": "text",
}


def described_by_json(path: Path) -> Iterator[tuple[str, Entry]]:
    """Yields the declaration of each column of a schema; nothing for an unknown kind of schema."""
    form = json.loads(side_text(path))
    if "fields" in form:
        yield from _frictionless(form)
    for resource in form.get("resources", ()):
        yield from _frictionless(resource.get("schema", {}))
    tables = form.get("tables", ())
    if "tableSchema" in form:
        tables = [form]
    for table in tables:
        for column in table.get("tableSchema", {}).get("columns", ()):
            yield from _csvw(column)


def _frictionless(schema: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
    """Yields the declaration of each field of a Table Schema."""
    everywhere = schema.get("missingValues", ())
    for field in schema.get("fields", ()):
        limits = field.get("constraints", {})
        values = _values(limits.get("enum", ())) or _values(field.get("categories", ()))
        declaration = entry(
            _TYPES.get(field.get("type", "string"), ""),
            bounds=(limits.get("minimum"), limits.get("maximum")),
            values=values,
            missing=_values(field.get("missingValues", everywhere)),
            format=field.get("format"),
        )
        if declaration.get("type") == "boolean":
            for key, name in (("true", "trueValues"), ("false", "falseValues")):
                declaration |= {key: field[name]} if name in field else {}
        yield field["name"], declaration


def _csvw(column: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
    """Yields the declaration of a CSVW column under its name and its titles (the header of a file)."""
    datatype = column.get("datatype", "string")
    if isinstance(datatype, str):
        datatype = {"base": datatype}
    missing = column.get("null", ())
    if isinstance(missing, str):
        missing = [missing]
    low = datatype.get("minimum", datatype.get("minInclusive"))
    high = datatype.get("maximum", datatype.get("maxInclusive"))
    kind = _TYPES.get(datatype.get("base", "string"), "")
    found = entry(kind, bounds=(low, high), missing=missing, format=datatype.get("format"))
    names = [column["name"]] if "name" in column else []
    for name in {*names, *_titles(column.get("titles"))}:
        yield name, found


def _titles(titles: object) -> list[str]:
    """The titles of a column, which are a string, a list, or a mapping by language."""
    if isinstance(titles, str):
        return [titles]
    if isinstance(titles, Mapping):
        return [title for each in titles.values() for title in _titles(each)]
    if isinstance(titles, list):
        return [title for title in titles if isinstance(title, str)]
    return []


def _values(listed: Sequence[Any]) -> dict[str, str]:
    """The labels of values; an item is a value, or an object with value and label."""
    values = {}
    for item in listed:
        if isinstance(item, Mapping):
            values[str(item["value"])] = str(item.get("label", item["value"]))
        else:
            values[str(item)] = str(item)
    return values
