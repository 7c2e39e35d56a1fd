# SPDX-License-Identifier: Apache-2.0
"""Rows as bytes, and what a tick states before the data is read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis.tick_task import StreamSeries, all_rows, packed, unpacked
from tests.synopsis.test_stream_plan import CITY, planned

INTEGERS = st.lists(st.integers(-(2**127), 2**127 - 1), max_size=4).map(tuple)
ROWS = st.dictionaries(st.integers(1, 2**40), st.tuples(st.integers(-(2**40), 2**40), INTEGERS))


@given(ROWS)
def test_rows_are_read_as_they_were_written(rows):
    assert unpacked(packed(rows)) == rows


def test_a_row_that_comes_again_is_one_row():
    one, two = {1: (5, (7,))}, {1: (5, (7,)), 2: (6, (8,))}
    assert all_rows([packed(one), packed(two)]) == two


def test_a_piece_begins_where_the_last_stored_one_ended():
    series = StreamSeries(planned(64), CITY)
    series.until = series.plan.time.lower_code + 9
    first = series.piece(1, {})
    assert (first.after, first.places) == (None, 1)
    later = series.piece(5, {2: packed({2: (series.until - 3, (1,))})})
    assert (later.after, later.places) == (series.until - 3, 3)
    assert later.size == 3 * (24 + 16) and later.cells == (1,) == first.cells
    assert later.event == series.event == first.event
    assert later.ready(CITY) == later.ticks.plan
    with pytest.raises(WrongUse, match="other declarations"):
        later.ready(Dataset("other", CITY.tables))


def test_the_form_of_a_stream_names_all_but_its_time():
    forms = {
        StreamSeries(planned(64, **options), CITY).form
        for options in ({}, {"by": ["line"]}, {"participations": 2}, {"where": "line = 'A'"})
    }
    assert len(forms) == 4
    one = StreamSeries(planned(64), CITY)
    one.until += 1
    assert one.form in forms


def test_the_noise_of_a_tree_is_drawn_in_the_charge():
    task = StreamSeries(planned(64, rho=None, epsilon=1), CITY).piece(1, {})
    assert task.cells == (None,)
    levels = len(task.ticks.encoder.weights)
    assert task.size == 24 + 16 * levels
    assert replace(task, places=2).size == 2 * task.size
