# SPDX-License-Identifier: Apache-2.0
"""The JSON form of oracles: weights are decimal strings, and nothing else is read as one."""

import pytest

from sfumato.telemetry.oracles.category import category
from sfumato.telemetry.oracles.form import KINDS, oracle_from_json, oracle_to_json


def test_weights_are_texts_and_sizes_are_numbers():
    form = oracle_to_json(category(4, 1))
    assert isinstance(form["truth"], str) and form["values"] == 4
    assert int(form["truth"]) + 3 * int(form["other_weight"]) == 1 << 64


@pytest.mark.parametrize(
    "damage",
    [{"truth": 5}, {"truth": "-5"}, {"truth": "\u0665"}, {"values": "4"}, {"values": True}],
)
def test_a_damaged_form_is_refused(damage):
    with pytest.raises(TypeError):
        oracle_from_json({**oracle_to_json(category(4, 1)), **damage})


def test_every_kind_has_its_name():
    assert set(KINDS) == {
        "category",
        "projective",
        "bit",
        "hashed",
        "unary",
        "mean",
        "levels",
        "rappor",
        "attributes",
        "sketch",
        "prefixes",
        "fragments",
    }
