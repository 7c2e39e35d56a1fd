# SPDX-License-Identifier: Apache-2.0
"""Spark: the same plans and the same integers, where the data outgrows one machine.

It runs the SQL of ``emit``, translated construct by construct (``spark_statement``), in a
session of our own in the Spark application, so that no setting of anybody else's changes
what a statement means. The integers are collected once; no noise is ever in Spark.
"""

import logging
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import duckdb

from sfumato.engines.base import Codes, Exact, tidy
from sfumato.engines.emit import gather, statements
from sfumato.engines.files import from_file, unreadable
from sfumato.engines.spark_kind import identifier
from sfumato.engines.spark_source import Read, declared, read
from sfumato.engines.spark_statement import translated
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource
from sfumato.metadata.table import Table
from sfumato.plan.aggregate import Variance, levels
from sfumato.plan.status import Bounded
from sfumato.plan.value import Value

# The versions on which tests/contracts/conformance.py passed; what another one computes is not known.
PASSED = ("4.3.0",)
