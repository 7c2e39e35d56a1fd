# SPDX-License-Identifier: Apache-2.0
"""Files beside the data are read in the encodings that editors and Excel write."""

import tomllib
from pathlib import Path

import pytest

from sfumato.errors import InvalidConfig
from sfumato.metadata.side_file import side_text

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
