# SPDX-License-Identifier: Apache-2.0
"""Small tables of texts in bags of three buckets, and sums of them, for tests."""

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.learning.bag import Bag
from sfumato.learning.examples import ExampleSums, Reading, steps_for
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import binned
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened

BAG = Bag(buckets=3, most=3)
WORDS = ("eye", "red", "left", "眼")
KINDS: dict[str, Any] = {
    "note": sf.Text(tokens=sf.Tokens()),
    "y": sf.Boolean(),
    "more": sf.Text(tokens=sf.Tokens()),
}


def sums(reading: Reading, norm: Norm, most: int, relation: Any) -> ExampleSums:
    frame = pa.table({"who": ["a"], "note": ["x"], "y": [True], "more": ["x"]})
    table = sf.Table(frame, unit=sf.Unit("who", max_rows_total=most), columns=KINDS)
    data = Dataset("tiny", {"t": table}, relation)
    found = Examples.of(data, "SELECT note, y, more FROM t", "y", BAG)
    features = found.features(lambda name, kind: binned(name, kind, {}, 3))
    steps = steps_for(most, features, 8)
    return ExampleSums(found.plan, features, found.places, found.label, reading, steps, norm)


NOTES = ["", "eye eye", "eye red", "red left 眼", "left"]
ROWS = [
    {"note": note, "y": y, "more": more}
    for note, more in zip(NOTES, [None, "眼", "red eye left", "eye", ""], strict=True)
    for y in (True, False)
]
REST = [{"who": "b", **row} for row in ROWS[:3]]
WEIGHTS = np.array([9000, -700, 30, 900, -4000, 12, 0, 5])


def exact(statistic: ExampleSums, rows: Any) -> Any:
    opened = Opened(statistic.plan, rows=Reference({"t": rows}).rows(statistic.plan, "key"))
    with opened:
        return statistic.exact(opened)
