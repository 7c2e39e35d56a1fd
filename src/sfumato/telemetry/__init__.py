# SPDX-License-Identifier: Apache-2.0
"""Telemetry: devices report with local differential privacy, so nobody holds a true value.

May import ``query`` and every room below it; opens no data, and charges through a task alone. Begin
with ``task`` (the question, how often and how devices answer it), then ``oracles`` (the mechanisms
on the device), ``client`` (what one device sends) and ``aggregator`` (estimates from all reports).
"""

from sfumato.telemetry.aggregator import Aggregator
from sfumato.telemetry.central import Central, central
from sfumato.telemetry.charge import sign
from sfumato.telemetry.choose import Candidate, candidates
from sfumato.telemetry.client import Client
from sfumato.telemetry.domain import Lattice, Listed, Record, Texts, Words
from sfumato.telemetry.estimates import Estimates
from sfumato.telemetry.keys import point_text
from sfumato.telemetry.numbers import Distribution, NumberEstimate
from sfumato.telemetry.planning import TelemetryPlan, plan
from sfumato.telemetry.sealing import opened, sealed, sent_size
from sfumato.telemetry.signing import SignedTask, signed_task, verified
from sfumato.telemetry.simulate import simulate
from sfumato.telemetry.store import FileStore, MemoryStore, Store
from sfumato.telemetry.task import ReportTask, report_task, task_from_bytes
from sfumato.telemetry.texts import TextEstimates

__all__ = [
    "Aggregator",
    "Candidate",
    "Central",
    "Client",
    "Distribution",
    "Estimates",
    "FileStore",
    "Lattice",
    "Listed",
    "MemoryStore",
    "NumberEstimate",
    "Record",
    "ReportTask",
    "SignedTask",
    "Store",
    "TelemetryPlan",
    "TextEstimates",
    "Texts",
    "Words",
    "candidates",
    "central",
    "opened",
    "plan",
    "point_text",
    "report_task",
    "sealed",
    "sent_size",
    "sign",
    "signed_task",
    "simulate",
    "task_from_bytes",
    "verified",
]
