# SPDX-License-Identifier: Apache-2.0
"""The limits of many accounts, read from a file."""

from pathlib import Path

import pytest

from sfumato.config.limits_file import read_limits
from sfumato.errors import WrongUse
from sfumato.ledger import Scope
from sfumato.privacy import Budget

EXPECTED = {
    Scope("d", "research"): Budget(2),
    Scope("d", "research", "ann, b"): Budget("0.1", "1e-6"),
    Scope("d", "other"): None,
}
CSV = 'purpose,analyst,epsilon,delta\nresearch,,2,\nresearch,"ann, b",0.1,1e-6\nother,,,\n'
TOML = """
[[account]]
purpose = "research"
epsilon = 2
[[account]]
purpose = "research"
analyst = "ann, b"
epsilon = 0.1
delta = "1e-6"
[[account]]
purpose = "other"
"""


@pytest.mark.parametrize(("name", "text"), [("l.csv", CSV), ("l.toml", TOML)])
def test_both_forms_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_limits(str(tmp_path / name), "d") == EXPECTED


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.txt", CSV, "is no file of limits"),
        ("l.toml", "a = 1", "is no file of limits"),
        ("l.toml", "account = 1", "is no file of limits"),
        ("l.toml", "account = [1]", "account 1 of .* is not a table of TOML"),
        ("l.toml", "[", "is not TOML"),
        ("l.csv", "purpose,epsilon\nresearch,1,2\n", "unknown key .*beyond the header"),
        ("l.csv", "purpose,limit\nresearch,1\n", "unknown key 'limit'"),
        ("l.csv", "analyst,epsilon\nann,1\n", "purpose is missing"),
        ("l.csv", "purpose,epsilon\n,1\n", "purpose is missing"),
        ("l.csv", "purpose,epsilon\na,1\na,2\n", "named before"),
        ("l.csv", 'purpose,epsilon\n"a,1\n', "cannot be read"),
        ("l.csv", "purpose,epsilon\na,-1\n", "epsilon"),
        ("l.csv", "purpose,epsilon,delta\na,,1e-6\n", "a delta and no epsilon"),
        ("l.toml", '[[account]]\npurpose = "a"\ndelta = "1e-6"', "a delta and no epsilon"),
    ],
)
def test_what_is_no_file_of_limits_is_refused(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(WrongUse, match=message):
        read_limits(str(tmp_path / name), "d")


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(WrongUse, match="cannot be read"):
        read_limits("none.csv", "d")
