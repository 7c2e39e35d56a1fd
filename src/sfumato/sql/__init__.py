# SPDX-License-Identifier: Apache-2.0
"""SQL text -> plan. Deny by default: what is not named here is refused, with a way out.

May import: ``plan``, ``metadata``, ``errors`` and what is below them. Begin with ``lower``:
``understand`` takes a text and gives a ``Question``. ``relations`` reads FROM, ``rows`` and
``functions`` the expressions of rows, ``aggregates`` and ``group`` what is asked of them,
``output`` what is made of the noisy numbers. ``reject`` says what is refused, why, and what
to write instead.
"""

from sfumato.plan.question import Question
from sfumato.sql.bind import scalar_queries
from sfumato.sql.lower import understand

__all__ = ["Question", "scalar_queries", "understand"]
