# SPDX-License-Identifier: Apache-2.0
"""Small Excel files, written as the ZIP of XML that they are."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = f"""<Types xmlns="{_PACKAGE}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/></Types>"""
_ROOT = f"""<Relationships xmlns="{_PACKAGE}/relationships">
<Relationship Id="r" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>"""
# style 1 is a day, 2 a day with its time, 3 a duration, 4 a time of day
_STYLES = f"""<styleSheet xmlns="{_MAIN}"><cellXfs count="5"><xf numFmtId="0"/>
<xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="46"/><xf numFmtId="20"/></cellXfs></styleSheet>"""

DAY, MOMENT, DURATION, TIME = 1, 2, 3, 4
# The serial number of 2024-12-31.
LAST_OF_2024 = 45657


def number(value: object, style: int = 0) -> str:
    """A cell with a number, which its style may show as a date."""
    return f'<c s="{style}"><v>{value}</v></c>'


def text(value: str) -> str:
    """A cell with a string."""
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def truth(value: bool) -> str:
    """A cell with TRUE or FALSE."""
    return f'<c t="b"><v>{int(value)}</v></c>'


def formula(result: str, kind: str = "n") -> str:
    """A cell with a formula and its stored result, "" for none."""
    stored = f"<v>{result}</v>" if result else ""
    return f'<c t="{kind}"><f>1+1</f>{stored}</c>'


def error(name: str) -> str:
    """A cell with an error, such as #N/A."""
    return f'<c t="e"><v>{name}</v></c>'


EMPTY = "<c/>"


def workbook(
    path: Path, sheets: Mapping[str, Sequence[Sequence[str]]], *, merged: str = "", first: int = 1
) -> Path:
    """Writes a workbook; ``merged`` is a range of merged cells, ``first`` the first row."""
    listed = linked = ""
    parts = {"[Content_Types].xml": _TYPES, "_rels/.rels": _ROOT, "xl/styles.xml": _STYLES}
    for place, (name, rows) in enumerate(sheets.items(), 1):
        listed += f'<sheet name="{escape(name)}" sheetId="{place}" r:id="r{place}"/>'
        target = f"worksheets/sheet{place}.xml"
        linked += f'<Relationship Id="r{place}" Type="{_OFFICE}/worksheet" Target="{target}"/>'
        parts[f"xl/{target}"] = _sheet(rows, merged, first)
    linked += f'<Relationship Id="s" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    spaces = f'xmlns="{_MAIN}" xmlns:r="{_OFFICE}"'
    parts["xl/workbook.xml"] = f"<workbook {spaces}><sheets>{listed}</sheets></workbook>"
    parts["xl/_rels/workbook.xml.rels"] = (
        f'<Relationships xmlns="{_PACKAGE}/relationships">{linked}</Relationships>'
    )
    with zipfile.ZipFile(path, "w") as file:
        for name, part in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{part}')
    return path


def _sheet(rows: Sequence[Sequence[str]], merged: str, first: int) -> str:
    written = ""
    for place, row in enumerate(rows, first):
        cells = ""
        for column, cell in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", row, strict=False):
            cells += cell.replace("<c", f'<c r="{column}{place}"', 1)
        written += f'<row r="{place}">{cells}</row>'
    merges = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{written}</sheetData>{merges}</worksheet>'
