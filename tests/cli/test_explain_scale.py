# SPDX-License-Identifier: Apache-2.0
"""``sfumato explain-epsilon --per``: houses, a street and a town."""

import json
import math

import pytest

from sfumato.cli.explain_scale import between, scale_text
from sfumato.privacy.relaxations import MetricDP
from tests.contracts.shell import Shell


def test_each_pair_of_places_has_its_epsilon_and_the_best_guess() -> None:
    house, street, town = between(MetricDP(1, "200m"))
    assert [float(each.promise.epsilon) for each in (house, street, town)] == [0.1, 1.5, 25]
    for each in (house, street, town):
        odds = math.exp(float(each.promise.epsilon))
        assert float(each.accuracy) == pytest.approx(odds / (1 + odds))


def test_the_shell_explains_a_scale(shell: Shell) -> None:
    ran = shell.run("explain-epsilon", "1", "--per", "200m")
    assert (ran.code, ran.err) == (0, "")
    for word in ("house", "street", "town", "no differential privacy", "949 m"):
        assert word in ran.out
    form = json.loads(shell.run("explain-epsilon", "1", "--per", "0.2km", "--format", "json").out)
    assert form["per_metres"] == "200" and len(form["between"]) == 3
    assert scale_text(MetricDP(1, 200)).strip() == ran.out.strip()


@pytest.mark.parametrize(
    "wrong",
    [
        ("--per", "200m"),
        ("1", "--per", "0m"),
        ("1", "--per", "far"),
        ("1", "--per", "200m", "--delta", "1e-6"),
        ("--per", "200m", "--rho", "1"),
        ("0", "--per", "200m"),
    ],
)
def test_a_scale_that_is_none_is_refused(shell: Shell, wrong: tuple[str, ...]) -> None:
    assert shell.run("explain-epsilon", *wrong).code == 2
