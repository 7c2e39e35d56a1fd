# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo stream``: units, days under one charge, and births denoised."""

from sfumato.examples.demo_stream import rides
from tests.contracts.shell import Shell


def test_it_shows_units_days_and_births(shell: Shell) -> None:
    ran = shell.run("demo", "stream")
    assert (ran.code, ran.err) == (0, "")
    for words in ("61 days", "2022-10-15", "the last 7 days", "denoised", "1e-07"):
        assert words in ran.out


def test_each_card_rides_on_many_days() -> None:
    table = rides()
    assert len(set(table["card"].to_pylist())) == 400
    assert len(set(table["day"].to_pylist())) == 61
