# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of privacy as data types: unit, distance, guarantee, budget, event, mechanism.

May import: ``noise``, ``exact``, ``errors``. Begin with ``unit`` (who is protected), then ``event``
(what was done to the data) and ``mechanism`` (the interface of every mechanism).
"""

from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    ApproxEvent,
    BestOf,
    Block,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    FixedSample,
    Group,
    NoisyMax,
    Nonadaptive,
    Parallel,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Repeated,
    Rule,
    Sampled,
    Selection,
    Shuffled,
    SparseVector,
    Stream,
    Thresholded,
    WithReplacementSample,
)
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from sfumato.privacy.mechanism import Mechanism
from sfumato.privacy.unit import AddRemove, Edge, Node, Relation, ReplaceOne, Unit

__all__ = [
    "AddRemove",
    "AdditiveNoise",
    "ApproxDP",
    "ApproxEvent",
    "BestOf",
    "Block",
    "BoundedRange",
    "BoundedRangeDP",
    "Budget",
    "Composed",
    "ContinuousLaw",
    "ContinuousNoise",
    "Distance",
    "Edge",
    "Event",
    "FixedSample",
    "GaussianDP",
    "Group",
    "Guarantee",
    "Mechanism",
    "Node",
    "NoisyMax",
    "Nonadaptive",
    "Norm",
    "Parallel",
    "PoissonSample",
    "PureDP",
    "PureEvent",
    "RandomizedResponse",
    "Relation",
    "RenyiDP",
    "Repeated",
    "ReplaceOne",
    "Rule",
    "Sampled",
    "Selection",
    "Shuffled",
    "SparseVector",
    "Stream",
    "Thresholded",
    "Unit",
    "WithReplacementSample",
    "ZeroConcentratedDP",
]
