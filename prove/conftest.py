# SPDX-License-Identifier: Apache-2.0
"""What a long test has measured stands at the end of ``make prove``'s output."""

from collections.abc import Callable

import pytest

LINES = pytest.StashKey[list[str]]()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keeps a line for the end."""
    return request.config.stash.setdefault(LINES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the lines."""
    lines = terminalreporter.config.stash.get(LINES, [])
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)
