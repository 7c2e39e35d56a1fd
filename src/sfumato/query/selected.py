# SPDX-License-Identifier: Apache-2.0
"""Which rows of an answer were chosen by released numbers, and among how many.

A number that is shown because it is large is too large on average: of 50 equal groups, the interval
of the largest covers in 28% of answers if it is that of one number. Intervals that hold for all
rows at once hold for those that were chosen, however they were. Proof: selected.proof.md.
"""

import math

from sfumato.plan.output import Output
from sfumato.plan.scalar import Estimate, Scalar, leaves
from sfumato.plan.stages import Raw


def candidates(output: Output, rows: int) -> int:
    """Returns the number of rows among which HAVING or LIMIT selects by released numbers; 1 if none
    do.

    HAVING and LIMIT choose rows. ``rows`` is the number of rows before them.

    Guarantees:
        intervals of rows that were chosen hold for all rows at once

    >>> candidates(Output((), having=Estimate(0)), 50), candidates(Output((), limit=3), 50)
    (50, 1)
    """
    ends = output.offset > 0 or (output.limit is not None and output.limit < rows)
    by_order = ends and any(is_released(order.expression) for order in output.order)
    by_having = output.having is not None and is_released(output.having)
    return max(rows, 1) if by_having or by_order else 1


def declared_rows(raw: Raw, output: Output) -> int:
    """Returns the number of rows of a SQL answer before HAVING and LIMIT; 1 if the groups are not
    public.
    """
    if raw.is_open:
        return 1
    sizes = [len(key.codes or ()) + key.missing for key in raw.keys]
    sets = output.sets or (tuple(range(len(sizes))),)
    return sum(math.prod(sizes[key] for key in keys) for keys in sets)


def is_released(expression: Scalar) -> bool:
    """Returns whether an expression depends on a noisy estimate."""
    return any(isinstance(leaf, Estimate) for leaf in leaves(expression))
