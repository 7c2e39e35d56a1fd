# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several rooms."""

from tests.contracts.places import place
from tests.contracts.postgres import database, postgres
from tests.contracts.spark import both, java_errors, spark

__all__ = ["both", "database", "java_errors", "place", "postgres", "spark"]
