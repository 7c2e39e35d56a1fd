# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several rooms."""

from tests.contracts.places import place
from tests.contracts.postgres import database, postgres

__all__ = ["database", "place", "postgres"]
