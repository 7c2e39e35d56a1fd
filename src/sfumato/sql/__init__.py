# SPDX-License-Identifier: Apache-2.0
"""Compiles SQL text to a plan. Deny by default: only listed syntax is accepted.

May import: ``plan``, ``metadata``, ``errors`` and rooms below them. Begin with ``lower``:
``understand`` turns a statement into a ``Question`` (a plan, and the output columns). ``parse``
makes the syntax tree; ``relations`` lowers FROM and sub-queries, ``row_expressions`` and
``functions`` expressions of rows, ``aggregates`` and ``group`` the aggregates and keys, ``output``
the post-processing of released numbers. ``reject`` has the refusals: what, why, and what to write
instead.
"""

from sfumato.plan.question import Question
from sfumato.sql.bind import scalar_queries
from sfumato.sql.lower import understand

__all__ = ["Question", "scalar_queries", "understand"]
