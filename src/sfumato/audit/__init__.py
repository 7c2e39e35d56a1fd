# SPDX-License-Identifier: Apache-2.0
"""Audits: tries to violate the guarantees of mechanisms, of sfumato and of other libraries.

May import: ``query`` and every room below it. Begin with ``verify``, which proves or refutes a
claim by exact output distributions. ``attack`` only runs a mechanism, so it accepts any.
``catalogue`` lists every mechanism of sfumato for both; ``sfumato audit`` checks them. ``one_run``
scores any attack by its right guesses; ``residuals`` tests the noise itself; ``published`` finds
what exact tables of counts give away; ``system`` tries an owner's declarations on this engine.
"""

from sfumato.audit.attack import Audit, Trial, audit
from sfumato.audit.catalogue import Checked, Promised, catalogue
from sfumato.audit.membership import Membership, membership
from sfumato.audit.neighbours import Neighbours, worst_neighbours
from sfumato.audit.one_run import OneRun, guesses, one_run
from sfumato.audit.outcome import Raised
from sfumato.audit.published import Cell, Published, published
from sfumato.audit.residuals import Residuals, residuals
from sfumato.audit.system import Result, System, system
from sfumato.audit.verdict import Verdict
from sfumato.audit.verify import Finding, Measure, Verification, verify

__all__ = [
    "Audit",
    "Cell",
    "Checked",
    "Finding",
    "Measure",
    "Membership",
    "Neighbours",
    "OneRun",
    "Promised",
    "Published",
    "Raised",
    "Residuals",
    "Result",
    "System",
    "Trial",
    "Verdict",
    "Verification",
    "audit",
    "catalogue",
    "guesses",
    "membership",
    "one_run",
    "published",
    "residuals",
    "system",
    "verify",
    "worst_neighbours",
]
