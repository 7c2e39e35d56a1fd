# SPDX-License-Identifier: Apache-2.0
"""Tries to break the promises of every room below, and those of other libraries.

May import: ``query`` and every room below it. Begin with ``verify``: a proof or a refutation
of a claim by exact output laws. ``attack`` needs only runs, so it takes any mechanism.
"""

from sfumato.audit.attack import Audit, Trial, audit
from sfumato.audit.neighbours import Neighbours, worst_neighbours
from sfumato.audit.outcome import Raised
from sfumato.audit.verdict import Verdict
from sfumato.audit.verify import Finding, Measure, Verification, verify

__all__ = [
    "Audit",
    "Finding",
    "Measure",
    "Neighbours",
    "Raised",
    "Trial",
    "Verdict",
    "Verification",
    "audit",
    "verify",
    "worst_neighbours",
]
