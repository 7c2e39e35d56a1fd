# SPDX-License-Identifier: Apache-2.0
"""A synopsis: one noisy measurement, chosen for a workload, from which many queries are answered.

``plan`` compares measurement strategies from declarations alone; ``measure`` charges the best one
once. Every later answer is post-processing and costs no budget. ``column`` answers about one
column, ``tables`` about several, ``stream`` counts tick by tick, ``geography`` measures census
tables down a spine of areas. ``stack`` and ``grid`` have the theory: sums of blocks whose widths
divide one another act on orthogonal spaces as multiplication by a number. ``layer_statistic`` and
``block_sums`` have the privacy proofs.

May import ``query`` and every room below it; reaches private data through a task alone. Begin with
``measure``.
"""

from sfumato.synopsis.column import Plan, Synopsis
from sfumato.synopsis.counts import Counts
from sfumato.synopsis.denoise import Denoised, denoise
from sfumato.synopsis.estimate import Estimate
from sfumato.synopsis.geography.census import census
from sfumato.synopsis.geography.plan import census_plan
from sfumato.synopsis.geography.spine import Spine
from sfumato.synopsis.least_cost import Worst
from sfumato.synopsis.measure import measure, plan
from sfumato.synopsis.restore import from_json
from sfumato.synopsis.stream import Stream, stream
from sfumato.synopsis.stream_plan import StreamPlan, Totals, Windows, plan_stream
from sfumato.synopsis.tables import Tables, TablesPlan
from sfumato.synopsis.wanted import Wanted, cells, marginals, prefixes, queries, ranges

__all__ = [
    "Counts",
    "Denoised",
    "Estimate",
    "Plan",
    "Spine",
    "Stream",
    "StreamPlan",
    "Synopsis",
    "Tables",
    "TablesPlan",
    "Totals",
    "Wanted",
    "Windows",
    "Worst",
    "cells",
    "census",
    "census_plan",
    "denoise",
    "from_json",
    "marginals",
    "measure",
    "plan",
    "plan_stream",
    "prefixes",
    "queries",
    "ranges",
    "stream",
]
