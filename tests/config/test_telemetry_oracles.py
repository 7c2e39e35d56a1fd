# SPDX-License-Identifier: Apache-2.0
"""The oracle that a file names is the one that Python makes; what it cannot name is refused."""

from fractions import Fraction

import pytest

from sfumato.config.telemetry_oracles import OracleConfig
from sfumato.errors import SfumatoError
from sfumato.telemetry import Listed, Texts, Words, oracles

LIST, TYPED = Listed(("a", "b", "c")), Words("ab", 5)
RAPPOR = {"kind": "rappor", "f": 0.25, "hashes": 2, "bits": 16, "cohorts": 3}


@pytest.mark.parametrize(
    ("named", "epsilon", "domain", "made"),
    [
        (None, "1", LIST, oracles.category(4, 1)),
        ("hashed", "2", LIST, oracles.hashed(4, 2)),
        ({"kind": "levels", "branching": 2}, "2", LIST, oracles.levels(4, 2, 2)),
        (None, "2", Texts(), oracles.sketch(2)),
        (
            {"kind": "sketch", "rows": 8, "buckets": 64},
            "2",
            Texts(),
            oracles.sketch(2, rows=8, buckets=64),
        ),
        ({"kind": "count_mean", "rows": 8}, "2", Texts(), oracles.count_mean(2, rows=8)),
        ("hadamard_count_mean", "0.5", Texts(), oracles.hadamard_count_mean("0.5")),
        ("rappor", None, Texts(), oracles.rappor()),
        (RAPPOR, None, Texts(), oracles.rappor(f=Fraction(1, 4), hashes=2, bits=16, cohorts=3)),
        (None, "4", TYPED, oracles.prefixes(3, 5, 4)),
        ("fragments", "4", TYPED, oracles.fragments(3, 5, 4)),
        (
            {"kind": "fragments", "whole": "0.4"},
            "4",
            TYPED,
            oracles.fragments(3, 5, 4, whole="0.4"),
        ),
    ],
)
def test_an_oracle_is_that_of_python(named, epsilon, domain, made):
    assert OracleConfig("telemetry.t", named, epsilon).of(domain) == made


@pytest.mark.parametrize(
    ("named", "epsilon", "domain", "said"),
    [
        ("projectiv", "1", LIST, "Did you mean projective?"),
        ("sketch", "1", LIST, "the oracle 'sketch'"),
        ("category", "1", Texts(), "the oracle 'category'"),
        ("rappor", "1", TYPED, "the oracle 'rappor'"),
        (3, "1", LIST, "the oracle 3"),
        ([], "1", LIST, "the oracle"),
        ({}, "1", LIST, "the oracle"),
        ({"kind": ["sketch"]}, "1", Texts(), "the oracle"),
        ({"kind": "sketch", "row": 3}, "1", Texts(), "Did you mean rows?"),
        ({"kind": "bit", "rows": 3}, "1", LIST, "the option 'rows'"),
        ({"kind": "sketch", "rows": "3"}, "1", Texts(), "rows = '3'"),
        ({"kind": "sketch", "rows": True}, "1", Texts(), "rows = True"),
        ({"kind": "sketch", "buckets": 1000}, "1", Texts(), "buckets"),
        ({"kind": "levels", "branching": 1}, "1", LIST, "1"),
        ({"kind": "fragments", "whole": 1}, "1", TYPED, "whole"),
        ({"kind": "rappor", "f": "much"}, None, Texts(), "f"),
        ({"kind": "rappor", "f": 3}, None, Texts(), ""),
        ({"kind": "rappor", "q": []}, None, Texts(), "q"),
        ("rappor", "2", Texts(), "Leave epsilon out"),
        ("sketch", None, Texts(), "missing epsilon"),
        (None, None, LIST, "missing epsilon"),
        ("prefixes", "0", TYPED, "epsilon"),
    ],
)
def test_what_cannot_be_is_refused(named, epsilon, domain, said):
    with pytest.raises(SfumatoError) as caught:
        OracleConfig("telemetry.t", named, epsilon).of(domain)
    assert said in str(caught.value)
