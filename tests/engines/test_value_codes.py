# SPDX-License-Identifier: Apache-2.0
"""Texts and codes of values against ones worked out by hand."""

import datetime
import math
from decimal import Decimal

import pytest

import sfumato as sf
from sfumato.engines.value_codes import code_of, text_of
from sfumato.metadata.column import Column
from sfumato.metadata.file_text import PLAIN, Numerals

DAYS = {
    "1970-01-01": 0,
    "1900-01-01": -1,
    "2019-02-29": None,
    "1970-1-1": None,
    datetime.date.max: 1,
}
CODES = {
    sf.Integer(-5, 3): {
        "-5": -5,
        "3.5": 3,
        "2.5": 2,
        "1.5": 2,
        " 1 ": 1,
        "1e400": 3,
        "-1e400": -5,
        "x": None,
        "": None,
    },
    sf.Real(0, 1, step="0.25"): {
        "0.125": 0,
        "0.375": 2,
        ".5": 2,
        math.inf: 4,
        math.nan: None,
        True: 4,
        Decimal("0.5"): 2,
    },
    sf.Date("1969-12-31", "1970-01-02"): {
        **DAYS,
        datetime.datetime.fromisoformat("1969-12-31T23:59:59"): -1,
    },
    sf.Category("1", "b"): {"1": 0, 1: 0, "b": 1, "B": None, "1.0": None, 1.5: None},
    sf.Category("1"): {1.0: 0, "01": None},
    sf.Category("1", "2"): {Decimal("1.00"): 0, "1.00": None},
    sf.Boolean(): {True: 1, "true": 1, "0": 0, 0.0: 0, "yes": None, 2: None},
    sf.Integer(0, 9, missing=("1", "")): {"1": None, 1.0: None, "1.0": 1, "": None},
    sf.Integer(0, 2000): {
        "12.0": 12,
        "12.5": 12,
        "1,000": None,
        "1.000,5": None,
        "\uff11\uff12": None,
    },
    sf.Date("2024-01-01", "2024-12-31"): {"31/12/2024": None, "2024-12-31": 20088},
    sf.Date("2024-01-01", "2024-12-31", format="%d/%m/%Y"): {
        "31/12/2024": 20088,
        "1/2/2024": 19754,
        "01/02/2024": 19754,
        "1/1/2023": 19723,
        "29/02/2024": 19782,
        "29/02/2023": None,
        "31/11/2024": None,
        "12/31/2024": None,
        "0/1/2024": None,
        "001/1/2024": None,
        "1/1/24": None,
        "1.1.2024": None,
        " 1/1/2024": None,
        "1/1/2024 00:00": None,
        "1/1/0000": None,
        "2024-12-31": None,
        datetime.date.fromisoformat("2024-12-31"): 20088,
    },
    sf.Date("2024-01-01", "2024-12-31", format="%m.%d.%Y"): {
        "12.31.2024": 20088,
        "12531.2024": None,
    },
    sf.Date("2024-01-01", "2024-12-31", format="%Y%m%d", missing="20240101"): {
        "20241231": 20088,
        "2024123": None,
        "20241301": None,
        "20240101": None,
        "00000101": None,
    },
    sf.Boolean(missing="N"): {"TRUE": 1, "tRue": None, "Y": None, "1.0": None, " 1": None},
    sf.Text(missing="N"): {"N": None, "n": "n", "": "", 5: "5"},
}


@pytest.mark.parametrize("kind", CODES, ids=repr)
def test_the_code_of_a_value_is_the_one_worked_out_by_hand(kind):
    for value, code in CODES[kind].items():
        assert code_of(Column("x", kind), value) == code, value
    assert code_of(Column("x", kind), None) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (1.0, "1"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (1e16, "10000000000000000"),
        (1e20, "1e+20"),
        (-(2.0**63), "-9223372036854775808"),
        (2.0**63, "9.223372036854776e+18"),
        (Decimal("1.50"), "1.50"),
        (Decimal("99999999999999999999.00"), "99999999999999999999"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (datetime.date(1970, 1, 2), "1970-01-02"),
        (datetime.datetime.fromisoformat("1970-01-02T03:04:05.600"), "1970-01-02 03:04:05.6"),
    ],
)
def test_a_value_is_compared_by_its_text(value, text):
    assert text_of(value) == text


# Of each pair of signs: numbers as they are written, and what they mean in quarters.
WRITTEN = {
    PLAIN: {"1.5": 6, "1,5": None, "1,000": None, "1 000": None, "1.000": 4},
    Numerals(","): {
        "1,5": 6,
        " -1,5 ": -6,
        ",25": 1,
        "2,": 8,
        "1,0e1": 40,
        "12,0": 48,
        "1.5": None,
        "12.0": None,
        "1.000,5": None,
        "1,,5": None,
        ",": None,
        "0,001": 0,
    },
    Numerals(",", "."): {
        "1.000,5": 4002,
        "1.000": 4000,
        "1000,5": 4002,
        "12.345.678": 49382712,
        "-1.000": -4000,
        "1.00": None,
        "1.0000": None,
        "1000.000": None,
        "0.001": None,
        "12.0": None,
        "1.000.": None,
        ".500": None,
        "1..000": None,
        "1,000.5": None,
        "1,000.000": None,
    },
    Numerals(".", ","): {
        "1,000": 4000,
        "1,000.25": 4001,
        "1.5": 6,
        "1,5": None,
        "1,00": None,
        ",100": None,
        "1,000,": None,
        "1.000,5": None,
        "1,000e1": 40000,
    },
    Numerals(",", " "): {
        "1 000,5": 4002,
        "1\u00a0000": 4000,
        "1\u202f000\u202f000": 4000000,
        " 1 000 ": 4000,
        "1  000": None,
        "1 00": None,
        "\u00a01": None,
        "1\t000": None,
    },
    Numerals(".", "'"): {
        "1'000.5": 4002,
        "1\u2019000": 4000,
        "1''000": None,
        "'1000": None,
        "\uff11'000": None,
    },
}


@pytest.mark.parametrize("numerals", WRITTEN, ids=repr)
def test_a_number_is_read_by_the_declared_signs(numerals):
    kind = Column("x", sf.Real(-(10**9), 10**9, step="0.25", missing="9.999"))
    for text, code in WRITTEN[numerals].items():
        assert code_of(kind, text, numerals) == code, text
    # a marker is compared with the text as it is written
    assert code_of(kind, "9.999", numerals) is None
    # values that are numbers already have no signs
    assert code_of(kind, 1.5, numerals) == 6
