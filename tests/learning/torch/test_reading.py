# SPDX-License-Identifier: Apache-2.0
"""Every code becomes a float within the declared range."""

import numpy as np
import pytest
import torch

from sfumato.engines.base import UnitRows
from sfumato.learning.bag import Bag, row_tokens
from sfumato.learning.torch import reading as module
from sfumato.learning.torch.reading import Input, Reading, TextReading
from sfumato.plan.rows import MISSING

AGE, CITY = Input(0, 10, 20, is_class=False), Input(1, 3, 5, is_class=True)
FAR = np.array([10, 15, 20, 3, 5, -(2**62), 2**62, MISSING])


def test_every_code_is_within_the_range_that_isolation_tries() -> None:
    assert Reading((AGE,), CITY).floats(FAR[:, None])[:, 0].tolist() == [0, 0.5, 1, 0, 0, 0, 1, 0]
    both = Reading((AGE, CITY), AGE).floats(np.stack([FAR, FAR], axis=1))
    assert both[:, 1].tolist() == [3, 3, 3, 0, 2, 3, 3, 3]
    assert AGE.most == 1 and CITY.most == 3


def test_float32_reads_what_integers_read(monkeypatch: pytest.MonkeyPatch) -> None:
    end = 2**22 - 1
    far = np.concatenate([FAR, np.arange(-3, 4) + end, np.arange(-3, 4) - end, [2**24 + 1]])
    for is_class in (False, True):
        short = Input(0, -end, end, is_class=is_class)
        found = Reading((short,), CITY).floats(far[:, None])
        monkeypatch.setattr(module, "_SHORT", 0)
        assert (found == Reading((short,), CITY).floats(far[:, None])).all()
        monkeypatch.undo()
    # the broken version reads longer integers in float32 too
    long, codes = Input(0, 2**30, 2**30 + 9, is_class=False), np.array([[2**30 + 3]])
    right = Reading((long,), CITY).floats(codes)
    monkeypatch.setattr(module, "_SHORT", 2**62)
    assert (right != Reading((long,), CITY).floats(codes)).any()


def test_rows_are_padded_and_labels_that_are_not_declared_are_unknown() -> None:
    reading = Reading((AGE,), CITY)
    x, y, known = reading.tensors(np.array([[20, 4], [10, 6], [12, MISSING], [11, 3]]), 6)
    assert x.shape == (6, 1) and y.dtype == torch.int64
    assert known.tolist() == [True, False, False, True, False, False]
    assert y.tolist() == [1, 0, 0, 0, 0, 0]
    number = Reading((CITY,), AGE).tensors(np.array([[15, 4]]), 1)
    assert number[1].tolist() == [0.5] and number[0].tolist() == [[1.0]]
    chunks = [Reading((AGE,), CITY).tensors(np.zeros((size, 2), int), size) for size in range(9)]
    assert all(each[0].data_ptr() % 64 == 0 for each in chunks)


def test_made_up_rows_reach_both_ends() -> None:
    x, y = Reading((AGE, CITY), CITY).drawn(64, seed=0)
    assert x[0].tolist() == [0, 0] and x[-1].tolist() == [1, 3]
    assert set(x[:, 1].tolist()) == {0, 1, 2, 3} and set(y.tolist()) == {0, 1, 2}


def test_a_text_is_read_as_the_buckets_of_its_tokens() -> None:
    bag = Bag(8, 3)
    texts = row_tokens([["eye", "red"], [], ["eye", "eye"]])
    rows = UnitRows(np.array([[0, 4], [MISSING, 3], [0, 5]]), np.arange(4), tokens={0: texts})
    places = tuple(Input(2 + place, 0, bag.buckets - 1, is_class=True) for place in range(bag.most))
    reading = TextReading(places, CITY, bag)
    codes = reading.codes(rows, 0, 3)
    assert codes[:, :2].tolist() == rows.codes.tolist()
    x, y, known = reading.tensors(codes, 3)
    both = sorted({bag.bucket("eye"), bag.bucket("red")})
    assert x[0].tolist() == [*both, *[8] * (3 - len(both))]
    assert x[1].tolist() == [8, 8, 8] and x[2].tolist() == [bag.bucket("eye"), 8, 8]
    assert y.tolist() == [1, 0, 2] and known.all()
    # an embedding of one more than the buckets has a line for each
    drawn, _ = reading.drawn(256, seed=1)
    assert drawn.min() == 0 and drawn.max() == 8
    assert Reading((AGE,), CITY).codes(rows, 1, 3).tolist() == rows.codes[1:].tolist()
