# SPDX-License-Identifier: Apache-2.0
"""The compiler: these functions, in this order."""

from sfumato.metadata.dataset import Dataset
from sfumato.plan.status import Bounded, Raw
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.bound import bound
from sfumato.query.passes.limit import limit
from sfumato.query.passes.prune import prune
from sfumato.query.passes.track import track

PASSES = (prune, track, limit, bound)


def compile_plan(plan: Raw, dataset: Dataset, norm: Norm) -> Bounded:
    """A raw question as a plan that is bounded in ``norm``."""
    context = Context(dataset, norm)
    first, second, third, last = PASSES
    return last(third(second(first(plan, context), context), context), context)
