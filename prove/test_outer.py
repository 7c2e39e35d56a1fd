# SPDX-License-Identifier: Apache-2.0
"""Random SQL over private answers in large numbers: ``STATEMENTS=100000 make prove
ARGS=prove/test_outer.py`` takes hours.
"""

import os
from collections.abc import Callable
from pathlib import Path

from tests.attacks import shop
from tests.query.test_outer_random import compared

# The seeds from FIRST on; those below are tests.
FIRST = int(os.environ.get("FIRST", "500"))
STATEMENTS = int(os.environ.get("STATEMENTS", "2000"))


def test_statements_give_what_duckdb_gives_over_the_answers(
    report: Callable[[str], None], tmp_path: Path
) -> None:
    with shop.connected(tmp_path, shop.data()) as session:
        count = compared(session, range(FIRST, FIRST + STATEMENTS))
    report(f"outer statements: {count:,} of {STATEMENTS:,} compared with DuckDB, all the same")
    assert count > 0.9 * STATEMENTS
