# SPDX-License-Identifier: Apache-2.0
"""Sections of a file by name, and which one is meant."""

from pathlib import Path

import pytest

from sfumato.config.named_section import choose_section, read_section, require_table
from sfumato.errors import InvalidConfig

ONE = "[census.town]\na = 1\n"
TWO = f"{ONE}[census.country]\na = 2\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sfumato.toml"


def test_the_only_one_needs_no_name(path: Path) -> None:
    path.write_text(ONE, encoding="utf-8")
    assert choose_section(path, "census", None) == ("town", {"a": 1})
    path.write_text(TWO, encoding="utf-8")
    assert choose_section(path, "census", "country") == ("country", {"a": 2})
    assert read_section(path, "census") == {"town": {"a": 1}, "country": {"a": 2}}


@pytest.mark.parametrize(
    ("text", "name", "problem", "allowed", "remedy"),
    [
        (TWO, None, "2 tables [census.NAME] in ", "town, country", ""),
        (TWO, "twon", "No [census.twon] in ", "town, country", "Did you mean town?"),
        ("[census]", "town", "No [census.town] in ", "[census.NAME]", ""),
        ("a = 1", "town", "The file has no [census].", "", "docs/query.md has a whole example"),
        ("census = 3", "town", "census is not a table of TOML.", "", ""),
        ("[census]\ntown = 3", "town", "census.town is not a table of TOML.", "", ""),
    ],
)
def test_what_is_not_there_is_named(
    path: Path, text: str, name: str | None, problem: str, allowed: str, remedy: str
) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfig) as refused:
        choose_section(path, "census", name)
    error = refused.value
    assert error.problem.startswith(problem) and error.allowed == allowed
    assert error.remedy.startswith(remedy)


def test_a_table_is_returned_as_it_is() -> None:
    assert require_table({"a": 1}, "x") == {"a": 1}
    with pytest.raises(InvalidConfig, match="x is not a table"):
        require_table([], "x")
