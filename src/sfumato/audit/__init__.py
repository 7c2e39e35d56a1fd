# SPDX-License-Identifier: Apache-2.0
"""Audits: tries to violate the guarantees of mechanisms, of sfumato and of other libraries.

May import: ``query`` and every room below it. Begin with ``verify``, which proves or refutes a
claim by exact output distributions. ``attack`` only runs a mechanism, so it accepts any.
``catalogue`` lists every mechanism of sfumato for both; ``sfumato audit`` checks them.
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
