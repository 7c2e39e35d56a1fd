# SPDX-License-Identifier: Apache-2.0
"""Tries to break the promises of every room below, and those of other libraries.

May import: ``query`` and every room below it. Begin with ``verify``: a proof or a refutation
of a claim by exact output laws. ``attack`` needs only runs, so it takes any mechanism.
``catalogue`` holds every mechanism of the house for both.
"""

from sfumato.audit.attack import Audit, Trial, audit
from sfumato.audit.catalogue import Checked, Promised, catalogue
from sfumato.audit.neighbours import Neighbours, worst_neighbours
from sfumato.audit.outcome import Raised
from sfumato.audit.verdict import Verdict
from sfumato.audit.verify import Finding, Measure, Verification, verify

__all__ = [
    "Audit",
    "Checked",
    "Finding",
    "Measure",
    "Neighbours",
    "Promised",
    "Raised",
    "Trial",
    "Verdict",
    "Verification",
    "audit",
    "catalogue",
    "verify",
    "worst_neighbours",
]
