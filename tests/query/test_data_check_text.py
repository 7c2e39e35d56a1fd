# SPDX-License-Identifier: Apache-2.0
"""The report of a check of the data, as a newcomer reads it."""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.engines.inspect_columns import ColumnFacts, Form
from sfumato.engines.inspect_units import LimitFacts, UnitFacts
from sfumato.metadata.column import Column
from sfumato.query.data_check_text import (
    column_notes,
    column_table,
    counted,
    share,
    unit_lines,
)


def facts(kind, **options):
    given = {"rows": 10, "empty": 0, "marked": 0, "read": 10, "below": 0, "above": 0, **options}
    return ColumnFacts(Column("x", kind), **given)


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 0, "0.0%"),
        (0, 5, "0.0%"),
        (5, 5, "100.0%"),
        (1, 3, "33.3%"),
        (1, 10**7, "<0.1%"),
        (10**7 - 1, 10**7, ">99.9%"),
        (1, 1000, "0.1%"),
        (999, 1000, "99.9%"),
    ],
)
def test_none_and_all_are_said_of_nothing_else(part, whole, said):
    assert share(part, whole) == said


def test_counts_have_their_share():
    assert counted(12_345, 50_000) == "24.7% (12,345)"
    assert counted(0, 50_000) == "-"


def test_the_columns_are_one_table():
    lines = column_table([facts(sf.Integer(0, 9), read=5, empty=2, marked=1, above=1)]).split("\n")
    assert lines[0].split() == ["column", "read", "missing", "not", "read", "clipped"]
    assert lines[2].split() == ["x", "50.0%", "(5)", "30.0%", "(3)", "20.0%", "(2)", "10.0%", "(1)"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (sf.Integer(0, 9), "1234"),
        (sf.Real(0, 9), "-12.5"),
        (sf.Date("2024-01-01", "2024-12-31"), "YYYY-MM-DD"),
        (sf.Boolean(true="Y", false="N"), "Declared are Y for true, N for false."),
        (sf.Category("a"), "exactly"),
        (sf.Text(), "no string"),
    ],
)
def test_what_was_not_read_is_shown_with_what_is_read(kind, expected):
    notes = column_notes(facts(kind, read=8, forms=(Form('9"9', 2),)))
    assert notes[0] == r'  x: not read are values like "9\"9" (2)'
    assert expected in notes[1]


def test_what_is_clipped_names_both_bounds():
    notes = column_notes(facts(sf.Date("2024-01-01", "2024-12-31"), below=1, above=2))
    assert notes == ["  x: 1 below 2024-01-01, 2 above 2024-12-31"]


def test_what_is_beyond_a_clip_names_both_ends():
    kind = sf.Real(-10, 10, step="0.5", clip=(-2, "4.5"))
    assert column_notes(facts(kind, below_clip=1, above_clip=2)) == [
        "  x: beyond its clip are 30.0% (3) of the rows: 1 below -2.0, 2 above 4.5"
    ]
    assert column_notes(facts(kind)) == []


def test_declared_values_that_never_occur_are_named_up_to_ten():
    kind = sf.Category(*map(str, range(20)))
    never = tuple(map(str, range(12)))
    assert column_notes(facts(kind, never=never)) == [
        '  x: declared, but in no row: "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" and 2 more'
    ]
    # nothing was read: the forms say why
    assert column_notes(facts(kind, read=0, empty=10, never=never)) == []


def test_the_units_and_their_limits():
    unit = sf.Unit("visit", via="visits.patient", key="id", max_rows=2, max_groups=sf.AUTO)
    limits = (
        LimitFacts("max_rows=2", "", over=1, lost=3, out_of=40),
        LimitFacts("max_rows=2", "ward", over=0, lost=0, out_of=40),
        LimitFacts("max_groups=2", "job", over=2, lost=5, out_of=20, of_groups=True),
        LimitFacts("max_groups=2", "ward", over=2, lost=0, out_of=40),
    )
    found = UnitFacts(unit, rows=50, unnamed=4, without_partner=6, units=8, limits=limits)
    assert unit_lines(found) == [
        "unit visit: 8 units in 40 rows",
        "  8.0% (4) of the rows have no visit: not used",
        "  12.0% (6) of the rows have a visit without a partner in visits.patient: not used",
        "  max_rows=2: 12.5% (1) of the units are over it and lose 7.5% (3) of the rows",
        (
            "  max_groups=2, GROUP BY job: 25.0% (2) of the units are over it and lose "
            "25.0% (5) of their groups"
        ),
        "  max_groups=2, GROUP BY ward: 25.0% (2) of the units are over it and lose no row",
        "  max_groups is sf.AUTO: a question learns it, so nothing is counted",
    ]


def test_spellings_that_the_source_calls_equal_are_counted_for_each_column():
    facts = UnitFacts(sf.Unit("p"), 4, unnamed=0, without_partner=0, units=3)
    (_, line) = unit_lines(replace(facts, respelled=(("p", 1_200),)))
    assert line == (
        "  p: the source calls 1,200 spellings equal to others (a collation); "
        "each is an id of its own here"
    )


def test_it_says_that_no_unit_is_over_a_limit():
    limits = (LimitFacts("max_rows=2", "", over=0, lost=0, out_of=4),)
    found = UnitFacts(sf.Unit("p"), rows=4, unnamed=0, without_partner=0, units=3, limits=limits)
    assert unit_lines(found) == ["unit p: 3 units in 4 rows", "  no unit is over a limit"]
    none = UnitFacts(sf.Unit("p"), rows=4, unnamed=0, without_partner=0, units=3)
    assert unit_lines(none) == ["unit p: 3 units in 4 rows"]
