# SPDX-License-Identifier: Apache-2.0
"""The sessions to try the program with: shipped data, a ledger that ends with the process."""

import subprocess
import sys

import sfumato as sf
from sfumato.examples.census import PUBLISHED_SIZE


def test_a_session_of_people_answers_at_once() -> None:
    with sf.examples.people() as session:
        answer = session.query("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
    (count,) = answer.rows[0]
    assert isinstance(count, int)
    assert abs(count - PUBLISHED_SIZE) < 200  # noise of scale 2: exp(-100) beyond


def test_each_session_has_a_fresh_ledger_which_ends_with_the_process() -> None:
    code = (
        "import sfumato as sf, sys\n"
        "first, second = sf.examples.people(), sf.examples.people()\n"
        "first.query('SELECT COUNT(*) AS n FROM people', epsilon=1)\n"
        "assert (first.budget.left, second.budget.left) == (0, 1)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_the_budget_is_the_one_that_is_wanted() -> None:
    with sf.examples.people(epsilon=3) as session:
        assert session.budget.left == 3
