# SPDX-License-Identifier: Apache-2.0
"""Servers and places of the ledger.

What was counted stands at the end of ``make chaos``'s output.
"""

from prove.conftest import pytest_terminal_summary, report
from tests.contracts.places import place
from tests.contracts.postgres import database, postgres

__all__ = ["database", "place", "postgres", "pytest_terminal_summary", "report"]
