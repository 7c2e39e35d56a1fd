# SPDX-License-Identifier: Apache-2.0
"""The picture of the errors of telemetry, and the columns behind it."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import sfumato as sf
from benchmarks.figures_telemetry import accuracy
from benchmarks.telemetry_accuracy import (
    COLUMNS,
    DEVICES,
    RESULTS,
    Accuracy,
    counts,
    estimated,
    resampled,
)
from sfumato.telemetry import Texts, oracles

# one report in 10^15 is another value's
CLEAR = 35


def stored() -> list[Accuracy]:
    return [Accuracy(**each) for each in json.loads(RESULTS.read_text(encoding="utf-8"))]


def test_the_picture_has_a_dot_for_each_oracle_epsilon_and_column() -> None:
    rows = stored()
    svg = accuracy(rows)
    root = ElementTree.fromstring(svg)
    assert sum(each.tag.endswith("title") for each in root.iter()) == len(rows)
    assert {row.column for row in rows} == set(COLUMNS)


def test_the_columns_are_those_of_the_extract_and_are_resampled_to_a_million() -> None:
    found = counts()
    assert {column: len(rows) for column, rows in found.items()} == {
        "PUMA": 20,
        "INDP": 264,
        "AGEP": 96,
    }
    assert all(sum(rows.values()) == 27_253 for rows in found.values())
    assert sum(resampled(found["INDP"]).values()) == DEVICES


@pytest.mark.parametrize(
    ("oracle", "domain", "scale"),
    [
        (oracles.projective(3, CLEAR), ["1", "2"], 1),
        (oracles.sketch(4), Texts(), 1),
        # shares of the 3,000 devices, times a million
        (oracles.levels(4, CLEAR), sf.Integer(0, 3), DEVICES / 3000),
    ],
)
def test_every_kind_of_oracle_is_read_as_counts(oracle, domain, scale) -> None:
    found, errors = estimated(oracle, domain, {"1": 1000, "2": 2000})
    # ten standard errors
    assert (np.abs(found - scale * np.array([1000, 2000])) < 10 * errors + 5 * scale).all()
