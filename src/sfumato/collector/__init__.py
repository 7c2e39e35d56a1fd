# SPDX-License-Identifier: Apache-2.0
"""Receives reports of devices over HTTP and stores them, without address or time.

A shuffler forwards reports in random order. May import: ``telemetry`` and every room below it. It
opens no session and no ledger: reports are private before they arrive. Begin with ``app``, the ASGI
application; ``intake`` decides which reports are kept, ``folder`` or ``postgres`` stores them;
``shuffler`` stands before a collector.
"""

from sfumato.collector.app import Collector
from sfumato.collector.folder import Folder
from sfumato.collector.intake import Intake, SealedIntake, intake_of
from sfumato.collector.places import open_store, stored_reports
from sfumato.collector.shuffler import Shuffler
from sfumato.collector.store import ReportStore, StoreFailed

__all__ = [
    "Collector",
    "Folder",
    "Intake",
    "ReportStore",
    "SealedIntake",
    "Shuffler",
    "StoreFailed",
    "intake_of",
    "open_store",
    "stored_reports",
]
