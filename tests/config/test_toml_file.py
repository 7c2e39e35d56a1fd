# SPDX-License-Identifier: Apache-2.0
"""The TOML of a file: decimals are what is written, and what cannot be read is named."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig

DECIMALS = st.tuples(st.integers(-(10**25), 10**25), st.integers(1, 25), st.integers(-30, 30))


def parsed(folder: Path, value: str) -> object:
    path = folder / "a.toml"
    path.write_text(f"a = {value}\n", encoding="utf-8")
    return read_toml(path)["a"]


@given(DECIMALS)
def test_no_decimal_of_a_file_is_rounded(
    tmp_path_factory: pytest.TempPathFactory, parts: tuple[int, int, int]
) -> None:
    whole, places, exponent = parts
    written = f"{whole}.{'7' * places}e{exponent}"
    folder = tmp_path_factory.getbasetemp()
    try:
        value = parsed(folder, written)
    except InvalidConfig as error:
        assert error.remedy == f'Write it as a text: "{written}"'
        assert Decimal(repr(float(written))) != Decimal(written)
    else:
        assert Decimal(repr(value)) == Decimal(written)


@pytest.mark.parametrize("written", ["0.1", "1e-6", "1_000.5", "-2.50", "1e22", "0.0"])
def test_usual_decimals_need_no_quotes(tmp_path: Path, written: str) -> None:
    assert Decimal(repr(parsed(tmp_path, written))) == Decimal(written)


@pytest.mark.parametrize(
    "written", ["0.1000000000000000055", "1e400", "1e-400", "1e9999999999999999999"]
)
def test_what_a_float_would_change_is_refused_with_the_text_to_write(
    tmp_path: Path, written: str
) -> None:
    with pytest.raises(InvalidConfig, match="more digits") as refused:
        parsed(tmp_path, written)
    assert refused.value.remedy == f'Write it as a text: "{written}"'
    assert parsed(tmp_path, f'"{written}"') == written


def test_infinity_is_left_to_the_reader_of_the_key(tmp_path: Path) -> None:
    assert parsed(tmp_path, "-inf") == float("-inf")
    assert repr(parsed(tmp_path, "nan")) == "nan"


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("none.toml", "No file"),
        (".", "cannot be read"),
        ("postgresql://ada:hunter2@db/x", "The address of a server"),
    ],
)
def test_what_is_no_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfig, match=named) as refused:
        read_toml(path)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("written", ["[", "9" * 5000, "[" * 3000])
def test_what_is_no_toml_is_named(tmp_path: Path, written: str) -> None:
    with pytest.raises(InvalidConfig, match=r"a\.toml' is not TOML: "):
        parsed(tmp_path, written)
