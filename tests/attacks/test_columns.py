# SPDX-License-Identifier: Apache-2.0
"""Attack on noise that is used twice: the difference of two columns that hold the same is the
noise's alone.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.noise import SYSTEM, DiscreteLaplace, Entropy, Integers

KEYS = 60
# the two columns hold the same: their difference is the difference of the noise
FRAME = pa.table(
    {
        "key": [i % KEYS for i in range(6000)],
        "a": [i % 7 for i in range(6000)],
        "b": [i % 7 for i in range(6000)],
    }
)
COLUMNS = {"key": sf.Integer(0, KEYS - 1), "a": sf.Integer(0, 10), "b": sf.Integer(0, 10)}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[sf.Session]:
    """A table of which every group has the same sums in both columns."""
    tables = {"t": sf.Table(FRAME, columns=COLUMNS)}
    with sf.connect(
        tables, dataset="twins", budget=sf.Budget(100), ledger=tmp_path / "l.db"
    ) as opened:
        yield opened


def equal_noise(session: sf.Session, *, apart: bool) -> int:
    """In how many groups the two columns have the same noise, asked for together or apart."""
    if apart:
        one, other = (
            session.query(f"SELECT key, SUM({name}) AS s FROM t GROUP BY key", epsilon="0.25")
            for name in "ab"
        )
        return sum(left[1] == right[1] for left, right in zip(one.rows, other.rows, strict=True))
    both = session.query("SELECT key, SUM(a) AS a, SUM(b) AS b FROM t GROUP BY key", epsilon="0.5")
    return sum(row[1] == row[2] for row in both.rows)


@pytest.mark.parametrize("apart", [False, True])
def test_columns_of_an_answer_share_no_noise(session: sf.Session, apart: bool) -> None:
    # the scale is 40: two draws are equal with probability 1/160, and nine times in 60 with one
    # below 1e-9
    assert equal_noise(session, apart=apart) < 9


@pytest.mark.parametrize("apart", [False, True])
def test_columns_notice_noise_that_is_kept_and_used_again(
    session: sf.Session, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[tuple[DiscreteLaplace, object], Integers] = {}
    honest = DiscreteLaplace.sample

    def sample(law: DiscreteLaplace, shape: int, entropy: Entropy = SYSTEM) -> Integers:
        return kept.setdefault((law, shape), honest(law, shape, entropy))

    monkeypatch.setattr(DiscreteLaplace, "sample", sample)
    assert equal_noise(session, apart=apart) == KEYS
