# SPDX-License-Identifier: Apache-2.0
"""Codebooks in JSON: Table Schema, data packages and CSV on the Web."""

import json
from pathlib import Path
from typing import Any

from sfumato.cli.codebook_json import described_by_json


def described(folder: Path, form: Any) -> dict[str, Any]:
    path = folder / "book.json"
    path.write_text(json.dumps(form), encoding="utf-8")
    return dict(described_by_json(path))


FIELDS = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
    {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
    {"name": "ward", "type": "integer", "categories": [{"value": 1, "label": "A"}, {"value": 2}]},
    {"name": "smoker", "type": "boolean", "trueValues": ["Y"], "falseValues": ["N"]},
    {"name": "born", "type": "date", "format": "%d/%m/%Y", "missingValues": ["", "unknown"]},
    {"name": "note"},
    {"name": "place", "type": "geopoint"},
]
SCHEMA = {"fields": FIELDS, "missingValues": ["", "-9"]}


def test_a_table_schema(tmp_path: Path) -> None:
    found = described(tmp_path, SCHEMA)
    assert found == {
        "age": {"type": "integer", "lower": 0, "upper": 120, "missing": ["-9"]},
        "sex": {"type": "category", "values": ["F", "M"], "missing": ["-9"]},
        "ward": {"type": "category", "values": {"1": "A", "2": "2"}, "missing": ["-9"]},
        "smoker": {"type": "boolean", "missing": ["-9"], "true": ["Y"], "false": ["N"]},
        "born": {"type": "date", "format": "%d/%m/%Y", "missing": ["unknown"]},
        "note": {"type": "text", "missing": ["-9"]},
        "place": {"missing": ["-9"]},
    }
    assert described(tmp_path, {"resources": [{"name": "people", "schema": SCHEMA}]}) == found


def test_csv_on_the_web(tmp_path: Path) -> None:
    columns = [
        {"name": "age", "titles": "Age", "datatype": {"base": "integer", "minimum": "0",
                                                       "maxInclusive": 120}, "null": "NA"},
        {"titles": {"en": ["Sex"], "zh": "性别"}, "datatype": "string"},
        {"name": "x", "datatype": "hexBinary"},
    ]  # fmt: skip
    table = {"url": "people.csv", "tableSchema": {"columns": columns}}
    age = {"type": "integer", "lower": 0, "upper": 120, "missing": ["NA"]}
    found = described(tmp_path, table)
    assert found == {
        "age": age, "Age": age, "Sex": {"type": "text"}, "性别": {"type": "text"}, "x": {},
    }  # fmt: skip
    assert described(tmp_path, {"tables": [table]}) == found
