# SPDX-License-Identifier: Apache-2.0
"""Synopses: one measurement, well chosen before anything is spent, that answers every question.

May import ``query`` and every room below it; reaches private data through a task alone. Begin with
``synopsis`` (plan, measure, answer). ``stack`` has the theory: layers of blocks whose widths divide
one another act on orthogonal spaces as numbers. ``layer_statistic`` has the only privacy proof.
"""

from sfumato.synopsis.synopsis import (
    Estimate,
    Plan,
    Synopsis,
    cells,
    measure,
    plan,
    prefixes,
    ranges,
)

__all__ = ["Estimate", "Plan", "Synopsis", "cells", "measure", "plan", "prefixes", "ranges"]
