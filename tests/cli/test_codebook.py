# SPDX-License-Identifier: Apache-2.0
"""Codebooks of several files, and those that are refused."""

from pathlib import Path

import pytest

from sfumato.cli.codebook import read_codebook
from sfumato.errors import WrongUse


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_several_codebooks_are_one(tmp_path: Path) -> None:
    one = write(tmp_path, "one.csv", "name,values\nage,0..120\n")
    two = write(tmp_path, "two.csv", "name,values\nage,0..120\nsex,F;M\n")
    assert read_codebook([one, two]) == {
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "sex": {"type": "category", "values": ["F", "M"]},
    }


def test_two_that_contradict_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path, "one.csv", "name,values\nage,0..120\n")
    two = write(tmp_path, "two.csv", "name,values\nage,0..99\n")
    with pytest.raises(WrongUse, match="'age' is described in two ways"):
        read_codebook([one, two])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("book.txt", "age"), ("book.json", "{"), ("book.json", "[]"), ("book.json", '{"a": 1}'),
        ("book.json", '{"fields": [{"type": "integer"}]}'), ("book.json", '{"fields": 3}'),
        ("book.xml", "<codeBook>"), ("book.xml", "<codeBook/>"), ("book.csv", ""),
        ("book.csv", "name,values\nage\n"), ("book.sav", "no"), ("book.dta", "no"),
    ],
)  # fmt: skip
def test_what_is_no_codebook_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(WrongUse):
        read_codebook([write(tmp_path, name, text)])


def test_a_codebook_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("book.json", "book.xml", "book.csv", "book.sav", "book.dta"):
        with pytest.raises(WrongUse, match="cannot be read"):
            read_codebook([str(tmp_path / name)])
