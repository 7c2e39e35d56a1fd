# SPDX-License-Identifier: Apache-2.0
"""Codebooks in DDI: declared facts, never summaries of the data, and no entities."""

from pathlib import Path

import pytest

from sfumato.cli.codebook_ddi import described_by_ddi
from sfumato.errors import WrongUse

BOOK = """<?xml version="1.0" encoding="UTF-8"?>
<ddi:codeBook xmlns:ddi="ddi:codebook:2_5"><dataDscr>
<ddi:var name="age" dcml="0"><valrng><range min="0" max="120"/></valrng>
<invalrng><item VALUE="-9"/></invalrng>
<sumStat type="min">17</sumStat><sumStat type="max">89</sumStat><varFormat type="numeric"/></ddi:var>
<var name="income"><sumStat type="max">1</sumStat><varFormat type="numeric"/></var>
<var name="sex"><catgry><catValu>1</catValu><labl>Male</labl><catStat type="freq">7</catStat></catgry>
<catgry><catValu>2</catValu><labl>Female</labl></catgry>
<catgry missing="Y"><catValu>9</catValu><labl>Refused</labl></catgry>
<varFormat type="numeric"/></var>
<var name="job"><varFormat type="character"/></var><var/>
</dataDscr></ddi:codeBook>
"""
ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE codeBook [<!ENTITY a "aaaaaaaa"><!ENTITY f SYSTEM "file:///etc/hostname">]>
<codeBook><var name="&f;"/></codeBook>
"""


def test_what_is_declared_is_read_and_what_the_data_held_is_not(tmp_path: Path) -> None:
    path = tmp_path / "book.xml"
    path.write_text(BOOK, encoding="utf-8")
    assert dict(described_by_ddi(path)) == {
        "age": {"type": "integer", "lower": 0, "upper": 120, "missing": ["-9"]},
        "income": {"type": "real"},
        "sex": {"type": "category", "values": {"1": "Male", "2": "Female"}, "missing": ["9"]},
        "job": {"type": "text"},
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "book.xml"
    path.write_bytes(ENTITIES.encode(encoding))
    with pytest.raises(WrongUse, match="DOCTYPE"):
        list(described_by_ddi(path))
