# SPDX-License-Identifier: Apache-2.0
"""Receives reports of devices over HTTP and keeps them, with neither address nor time; a shuffler
forwards them in random order.

May import: ``telemetry`` and every room below it. It opens no session and no ledger: reports are
private before they arrive. Begin with ``app``, the ASGI application; ``intake`` decides what is
kept, ``folder`` keeps it; ``shuffler`` stands before a collector.
"""

from sfumato.collector.app import Collector
from sfumato.collector.folder import Folder
from sfumato.collector.intake import Intake, SealedIntake, intake_of
from sfumato.collector.shuffler import Shuffler

__all__ = ["Collector", "Folder", "Intake", "SealedIntake", "Shuffler", "intake_of"]
