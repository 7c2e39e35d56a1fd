# SPDX-License-Identifier: Apache-2.0
"""Files beside the data are read in the encodings that editors and Excel write."""

import tomllib
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli.audit_release import _rows
from sfumato.cli.audit_system import _statements
from sfumato.cli.codebook import read_codebook
from sfumato.cli.service_options import read_password
from sfumato.cli.telemetry import _hashes, _lines
from sfumato.config.census import read_totals
from sfumato.config.limits_file import read_limits
from sfumato.config.synthetic import public_counts
from sfumato.config.table import read_column
from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig
from sfumato.metadata.side_file import required_text, side_text
from sfumato.synopsis.geography.spine import Spine

TEXT = 'dataset = "数据"\n# 门诊人次 按病区\nname = "病区"\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "gbk", "utf-16"])
def test_a_text_is_read_in_each_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "sfumato.toml"
    path.write_bytes(TEXT.encode(encoding))
    assert side_text(path) == TEXT
    assert tomllib.loads(side_text(path)) == {"dataset": "数据", "name": "病区"}


@pytest.mark.parametrize("order", ["le", "be"])
def test_the_order_of_utf16_is_that_of_its_mark(tmp_path: Path, order: str) -> None:
    path = tmp_path / "book.csv"
    path.write_bytes(f"\ufeff{TEXT}".encode(f"utf-16-{order}"))
    assert side_text(path) == TEXT


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("a = 1\nb = 'Köln'\n".encode("latin-1"), 2),
        ("ä = 1\n".encode("cp1252"), 1),
        (TEXT.encode("gb18030") + b"\xff\n", 4),
        (b"\xff\xfea\x00\n\x00\x00\xdc", 2),
    ],
)
def test_wrong_bytes_name_the_file_and_the_line(tmp_path: Path, data: bytes, line: int) -> None:
    path = tmp_path / "sfumato.toml"
    path.write_bytes(data)
    with pytest.raises(InvalidConfig, match=rf"sfumato\.toml.*: line {line} is no text") as refusal:
        side_text(path)
    assert "UTF-8" in refusal.value.remedy


def words_of(path: Path) -> object:
    form = {"type": "text", "tokens": {"most": 9, "stop": path.name}}
    return read_column(form, "columns.note", path.parent)


# Each door through which a file comes that somebody has written, and a text that it takes.
DOORS = {
    "declarations": (read_toml, "sfumato.toml", 'dataset = "数据"\n'),
    "codebook": (
        lambda path: read_codebook([str(path)]),
        "book.csv",
        "column,values\n病区,内科=内\n",
    ),
    "schema": (
        lambda path: read_codebook([str(path)]),
        "book.json",
        '{"fields": [{"name": "病区", "type": "string", "constraints": {"enum": ["内科"]}}]}',
    ),
    "limits": (
        lambda path: read_limits(str(path), "d"),
        "limits.csv",
        "purpose,epsilon\n研究,0.2\n",
    ),
    "totals": (read_totals, "totals.csv", "level,area,total\n省,北京,7\n"),
    "public counts": (lambda path: public_counts(str(path)), "counts.csv", "病区,n\n内科,7\n"),
    "spine": (
        lambda path: Spine("省 > 市", path).codes,
        "spine.csv",
        "省,市\n北京,海淀\n河北,保定\n",
    ),
    "words": (words_of, "words.txt", "的\n和\n"),
    "texts": (lambda path: _lines(str(path)), "texts.txt", "你好\n再见\n"),
    "publication": (lambda path: _rows(str(path)), "table.csv", "性别,n\n男,7\n"),
    "statements": (lambda path: _statements(str(path)), "asked.sql", "SELECT '男';\n"),
    "hashes": (lambda path: _hashes(str(path)), "published.json", f'["{"a" * 64}"]\n'),
    "password": (lambda path: read_password(str(path)), "password.txt", "暗号\n"),
}


@pytest.mark.parametrize("door", DOORS)
def test_each_door_reads_each_encoding_and_names_wrong_bytes(tmp_path: Path, door: str) -> None:
    opened, name, text = DOORS[door]
    path = tmp_path / name
    found = []
    for encoding in ("utf-8", "utf-8-sig", "gb18030", "utf-16"):
        path.write_bytes(text.encode(encoding))
        found.append(repr(opened(path)))
    assert len(set(found)) == 1
    path.write_bytes(text.encode() + b"x\xff\n")
    line = text.count("\n") + 1
    with pytest.raises(sf.SfumatoError, match=rf"{name}.*: line {line} is no text") as refusal:
        opened(path)
    assert "UTF-8" in str(refusal.value)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="cannot be read") as refusal:
        required_text(tmp_path / "nothing.txt", "a text")
    assert refusal.value.allowed == "a text" and refusal.value.__context__ is None
    windows = tmp_path / "password.txt"
    windows.write_bytes(b"secret\r\n")
    assert read_password(str(windows)) == "secret"
