# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit``: a table of what every mechanism promises and keeps, and exit 3 where one does
not.
"""

import importlib
import json
from fractions import Fraction

import pytest
from rich.progress import Progress

from sfumato.audit import Promised, catalogue
from sfumato.mechanisms import AdditiveMechanism, laplace
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import Distance, Norm
from tests.contracts.shell import Shell

AUDIT = importlib.import_module("sfumato.cli.audit")
L1 = Distance(Norm.L1, Fraction(1))
CELL = ((0,), (1,))


class Halved(AdditiveMechanism):
    """Accounts for the noise of its law, and adds half of it."""

    def release(self, exact, drawn=None):
        noise = self.draw(len(exact)) if drawn is None else drawn
        return tuple(value + int(extra / 2) for value, extra in zip(exact, noise, strict=True))


def rows(out: str) -> dict[str, list[str]]:
    """The lines of the table by mechanism, its cells as they are separated."""
    table = out.split("\n\n")[0].split("\n")
    return {line.split()[0]: [cell for cell in line.split("  ") if cell] for line in table[2:]}


@pytest.mark.long
def test_all_mechanisms_are_in_the_table_and_none_is_broken(shell: Shell) -> None:
    ran = shell.run("audit", "--runs", "0")
    assert ran.code == 0
    assert list(rows(ran.out)) == [each.name for each in catalogue()]
    assert "holds" in ran.out and "not refuted" in ran.out and "BROKEN" not in ran.out


def test_a_line_has_the_claim_the_truth_the_runs_and_their_power(shell: Shell) -> None:
    ran = shell.run(
        "audit", "--mechanism", "laplace", "--mechanism", "threshold-laplace", "--runs", "4000"
    )
    told = rows(ran.out)
    assert list(told) == ["laplace", "threshold-laplace"]
    name, claim, exact, found, doubt, power, promise = (cell.strip() for cell in told["laplace"])
    assert (name, claim, promise) == ("laplace", "epsilon 1", "holds")
    assert exact == "epsilon [0.999999, 0.999999]" and 0.3 < float(found) <= 1 and doubt == "1e-09"
    # the set that was tested may be one that a right mechanism gives too often to notice anything
    assert power == "nothing" or float(power.split()[1]) > 1
    assert told["threshold-laplace"][1].strip().startswith("epsilon 2, delta 0.026")
    assert "2 of 2 are proved to hold" in ran.out


def test_a_claim_of_rho_is_shown_as_one(shell: Shell) -> None:
    told = rows(shell.run("audit", "--mechanism", "gaussian", "--runs", "0").out)["gaussian"]
    assert [cell.strip() for cell in told[1:]] == [
        "rho 0.5",
        "rho [0.499999, 0.499999]",
        "-",
        "-",
        "-",
        "holds",
    ]


def test_json_has_the_numbers(shell: Shell) -> None:
    ran = shell.run(
        "audit",
        "--mechanism",
        "laplace",
        "--mechanism",
        "mode",
        "--runs",
        "200",
        "--format",
        "json",
    )
    first, second = json.loads(ran.out)
    assert first["mechanism"] == "laplace" and first["claim"] == {"epsilon": "1", "delta": "0"}
    low, high = first["exact"]["epsilon"]
    assert low <= high <= 1 and first["exact"]["delta"] == "0.000001"
    assert (
        first["runs"]["confidence"] == "999999999/1000000000"
        and first["runs"]["trials"][0]["runs"] == 100
    )
    assert first["verdict"] == "HOLDS" and (second["exact"], second["verdict"]) == (
        None,
        "UNDECIDED",
    )
    # beyond all floats there is no number in JSON
    assert first["runs"]["notices"]["epsilon"] is None or first["runs"]["notices"]["epsilon"] > 1
    (bare,) = json.loads(
        shell.run("audit", "--mechanism", "laplace", "--runs", "0", "--format", "json").out
    )
    assert bare["runs"] is None


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize(("exact", "runs"), [(True, 0), (False, 4000)])
def test_a_broken_promise_is_a_failure(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, form: str, exact: bool, runs: int
) -> None:
    planted = Promised("planted", Halved(DiscreteLaplace(1)), L1, CELL, exact=exact)
    monkeypatch.setattr(
        AUDIT, "catalogue", lambda: iter((Promised("right", laplace(L1, 1), L1, CELL), planted))
    )
    ran = shell.run("audit", "--runs", runs, "--format", form)
    assert ran.code == 3
    assert ran.err.startswith("Failed: Broken promises: planted.\nWhat to do: ")
    if form == "table":
        assert (
            rows(ran.out)["planted"][-1].strip() == "BROKEN"
            and rows(ran.out)["right"][-1].strip() == "holds"
        )
    else:
        assert [each["verdict"] for each in json.loads(ran.out)] == ["HOLDS", "VIOLATED"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--runs", "-1"),
        ("--runs", "1"),
        ("--runs", "x"),
        ("--runs", 10**9),
        ("--mechanism", "nosuch"),
    ],
)
def test_ugly_arguments_are_refused(shell: Shell, arguments: tuple[object, ...]) -> None:
    ran = shell.run("audit", *arguments)
    assert ran.code == 2 and ran.out == ""
    if "nosuch" in arguments:
        assert "there are laplace, geometric" in ran.err


def test_the_bar_moves_within_a_mechanism() -> None:
    bar = Progress(disable=True)
    told = AUDIT._progress_within(bar, bar.add_task("mechanisms", total=9), before=5)
    told(1, 4)
    assert bar.tasks[0].completed == 5.25
    told(4, 4)
    assert bar.tasks[0].completed == 6
