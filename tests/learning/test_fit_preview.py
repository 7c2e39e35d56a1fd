# SPDX-License-Identifier: Apache-2.0
"""Previews say what a fit then does, and are free."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.learning.fit_preview import Preview, part
from sfumato.query.cost import Cost
from tests.learning.rows import SELECT, connected, frame


@pytest.mark.parametrize(
    ("recipe", "label", "releases", "numbers"),
    [
        (ln.Additive(steps=9), "ill", 10, 17 + 4 + 17),
        (ln.LogisticRegression(steps=4, order=ln.Poisson("0.1")), "ill", 5, 3 + 4 + 3),
        (ln.NaiveBayes(), "ill", 1, 2 * (17 + 4 + 17)),
        (ln.Ridge(), "pay", 1, (3 + 4 + 3 + 3) * 14 // 2),
    ],
)
def test_a_preview_is_what_a_fit_does(
    tmp_path: Path, recipe: Any, label: str, releases: int, numbers: int
) -> None:
    with connected(tmp_path, frame(300), sf.Budget(9, "1e-5")) as session:
        seen = ln.preview(session, recipe, SELECT, label=label, rho="0.1")
        assert (seen.releases, seen.numbers) == (releases, numbers)
        assert seen.noise > 0 and session.budget.spent == "0"
        assert "nothing was charged" in repr(seen)
        assert ln.fit(session, recipe, SELECT, label=label, rho="0.1").cost == seen.cost


def test_noise_is_in_examples(tmp_path: Path) -> None:
    with connected(tmp_path, frame(10), sf.Budget(9, "1e-5")) as session:
        seen = ln.preview(session, ln.Additive(steps=1), SELECT, label="ill", rho="0.01")
        # three features, two releases: sqrt(3) sqrt(2 / 0.02)
        assert seen.noise == pytest.approx(300**0.5, rel=1e-3)


def test_a_part_of_a_release_is_named_without_a_price() -> None:
    items = ({"epsilon": "1", "release": "a sum"}, part("a count", "4"))
    shown = repr(Preview(Cost("1", "0.5", "0", items), 1, 1, 2, 1.0))
    assert "of it: a count" in shown and "a sum" not in shown
    # every column of a cost in a notebook
    assert "a count" in Cost("1", "0.5", "0", items[1:])._repr_html_()


def test_a_preview_names_the_ends_and_bins_of_each_number(tmp_path: Path) -> None:
    columns = {
        "age": sf.Integer(0, 99, clip=80),
        "pay": sf.Real(0, 1_000_000, step="0.25"),
        "born": sf.Date("2000-01-01", "2000-12-31"),
        "ill": sf.Boolean(),
    }
    people = sf.Table(
        pa.table({"age": [1], "pay": [2.0], "born": ["2000-01-02"], "ill": [True]}), columns=columns
    )
    ledger = tmp_path / "ledger.db"
    with sf.connect(
        {"people": people}, dataset="town", budget=sf.Budget(1), ledger=ledger
    ) as session:
        recipe = ln.NaiveBayes(bins=4, edges={"age": [18]})
        statement = "SELECT age, pay, born, ill FROM people"
        seen = ln.preview(session, recipe, statement, label="ill", epsilon=1)
    # 4,000,001 steps of 0.25 in 4 bins, 366 days in 4 bins
    assert seen.ranges == (
        "age 0 to 80 in steps of 1 (bins between your edges)",
        "pay 0 to 1000000 (4 bins of 250,000)",
        "born 2000-01-01 to 2000-12-31 (4 bins of 91.5 days)",
    )
    assert "far beyond the values" in repr(seen)
