# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo synthetic``: rows, an answer with intervals, a page."""

import pyarrow.parquet as parquet
import pytest

from tests.contracts.shell import Shell


@pytest.mark.long
def test_it_makes_rows_of_the_extract_and_a_page(shell: Shell) -> None:
    ran = shell.run("demo", "synthetic")
    assert (ran.code, ran.err) == (0, "")
    for words in (
        "patients of visits that are in patients: 100%",
        "honest check",
        "nothing was charged",
        "n_low",
        "demo-synthetic.html",
    ):
        assert words in ran.out
    rows = parquet.read_table(shell.folder / "demo-synthetic" / "people.parquet").to_pandas()
    children = rows.query("AGEP < 15")
    assert len(children) > 1000
    assert children["MSP"].isna().all() and children["PINCP"].isna().all()
    assert not rows.query("AGEP >= 15")[["MSP", "PINCP", "EDU", "DREM", "DPHY"]].isna().any().any()
    for name in ("demo-synthetic.html", "demo-synthetic-hospitals.html"):
        assert (shell.folder / name).read_text().startswith("<!doctype html>")


def test_what_can_be_missing_is_declared() -> None:
    from sfumato.examples.demo_synthetic import people

    missing = {name for name, kind in people().columns.items() if kind.missing}
    assert {"MSP", "EDU", "PINCP", "POVPIP", "DREM", "DPHY"} == missing
