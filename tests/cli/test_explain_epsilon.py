# SPDX-License-Identifier: Apache-2.0
"""``sfumato explain-epsilon``: the numbers of the interpretation, never rounded the wrong way."""

import json
import math
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from sfumato.accounting.interpret import Attacker
from sfumato.cli import explain_epsilon
from sfumato.privacy import ApproxDP, ZeroConcentratedDP
from tests.contracts.shell import Shell


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_it_says_what_the_example_of_the_docs_says(shell: Shell) -> None:
    ran = shell.run(
        "explain-epsilon",
        "1",
        "--delta",
        "1e-6",
        "--prior",
        "0.1",
        "--group",
        "4",
        "--save-plot",
        "t.svg",
    )
    assert ran.code == 0
    for piece in (
        "epsilon 1, delta 0.000001, neighbours add-remove",
        "stays from 3.5482% to 25.1268%",
        "except with probability 0.00001: then up to certainty",
        "is right at most 73.1059% of the time",
        "is right at most 90.0001% (90% unseen)",
        "at most 46.2118% (the advantage)",
        "finds at most 2.7184% of the members",
        "at most 2.7184% with you",
        "epsilon 4, delta 0.0000311929",
        "With probability up to delta = 0.000001 all about a unit may be told.",
        "The secret is presence",
        "Facts about the population",
        "Israel, births of 2014 (2024)",
    ):
        assert piece in ran.out, piece
    assert ElementTree.fromstring(
        (shell.folder / "t.svg").read_text(encoding="utf-8")
    ).tag.endswith("svg")


def test_rho_is_read_at_a_delta(shell: Shell) -> None:
    ran = shell.run("explain-epsilon", "--rho", "0.1")
    assert ran.code == 0
    assert "rho 0.1 (zCDP)" in ran.out
    assert "as (epsilon, delta) at delta 0.000001" in ran.out
    assert "all about a unit may be told" not in ran.out


def test_replace_one_is_about_values(shell: Shell) -> None:
    ran = shell.run("explain-epsilon", "1", "--relation", "replace-one")
    assert "The secret is value" in ran.out
    assert "your value, if it is known" not in ran.out


def test_json_has_the_numbers_themselves(shell: Shell) -> None:
    ran = shell.run("explain-epsilon", "1", "--delta", "1e-6", "--prior", "0.1", "--format", "json")
    told, attacker = json.loads(ran.out), Attacker(ApproxDP(1, "1e-6"))
    assert told["advantage"] == attacker.advantage
    assert told["accuracy"]["prior"] == attacker.accuracy("0.1")
    assert told["posterior"] == {
        "lowest": attacker.posterior("0.1", "1e-5").lowest,
        "highest": attacker.posterior("0.1", "1e-5").highest,
        "failure": "0.00001",
    }
    assert [each for each in told["settings"] if each["url"] == "https://arxiv.org/abs/2405.00267"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("0",), 0), (("1e-400",), 0), (("1e300",), 0), (("1", "--delta", "1"), 0), (("1", "--delta", "0"), 0),
        (("1", "--prior", "0"), 0), (("1", "--prior", "1"), 0), (("1", "--group", "1"), 0), (("--rho", "0"), 0),
        (("1", "--group", "1000000000000"), 0), (("1", "--delta", "1e-300"), 0), (("--", "-1"), 2), (("nan",), 2),
        (("inf",), 2), (("1", "--delta", "2"), 2), (("1", "--delta", "-1"), 2), (("1", "--prior", "1.1"), 2),
        (("1", "--prior", "nan"), 2), (("1", "--group", "0"), 2), (("1", "--group", "x"), 2), (("1", "--rho", "1"), 2),
        ((), 2), (("--rho", "1", "--delta", "0"), 2), (("--rho", "-1"), 2), (("1", "--save-plot", "no/t.svg"), 2),
        (("1", "--relation", "else"), 2), (("many",), 2),
    ],
    ids=str,
)  # fmt: skip
def test_ugly_numbers_have_an_exact_limit_or_a_message(
    shell: Shell, arguments: tuple[str, ...], code: int
) -> None:
    ran = shell.run("explain-epsilon", *arguments)
    assert ran.code == code
    assert bool(ran.err) == (code != 0) and bool(ran.out) == (code == 0)
    assert "nan" not in ran.out and "inf" not in ran.out


@pytest.mark.parametrize(
    "number", ["1/3", "17.14", "1e-400", "0.0000311928", "123456789", "0.999999999"]
)
def test_numbers_are_shown_rounded_up(number: str) -> None:
    exact = Fraction(number)
    shown = Fraction(explain_epsilon._up(exact))
    assert exact <= shown <= exact * Fraction(100001, 100000)


@pytest.mark.parametrize("share", [0.0, 1.0, 1 / 3, 0.9000001, math.nextafter(0.5, 1)])
def test_percentages_err_to_their_side(share: float) -> None:
    least, most = (
        Fraction(text(share).rstrip("%")) / 100
        for text in (explain_epsilon._least, explain_epsilon._most)
    )
    assert least <= Fraction(share) <= most <= least + Fraction(1, 10**6)


@pytest.mark.long
def test_a_group_of_zcdp_is_drawn_too(shell: Shell) -> None:
    assert (
        shell.run("explain-epsilon", "--rho", "0.01", "--group", "1", "--save-plot", "one.svg").code
        == 0
    )
    assert (
        shell.run("explain-epsilon", "--rho", "0.01", "--group", "5", "--save-plot", "two.svg").code
        == 0
    )
    curves = [
        (shell.folder / name).read_text(encoding="utf-8").count("<path")
        for name in ("one.svg", "two.svg")
    ]
    assert curves == [1, 2]
    assert (
        Attacker(ZeroConcentratedDP("0.25")).advantage
        > Attacker(ZeroConcentratedDP("0.01")).advantage
    )


@pytest.mark.parametrize(
    ("number", "shown"), [("30", "30"), ("1000000", "1000000"), ("0.5", "0.5"), ("1e20", "1e+20")]
)
def test_whole_numbers_are_written_out(number: str, shown: str) -> None:
    assert explain_epsilon._up(Fraction(number)) == shown
