# SPDX-License-Identifier: Apache-2.0
"""Events: descriptions of what a mechanism did to the data, from which accountants compute cost.

``events`` and ``sampling_designs`` define them, ``serialization`` writes and reads them as JSON.
"""

from sfumato.privacy.event.events import (
    AdditiveNoise,
    ApproxEvent,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    Group,
    NoisyMax,
    Nonadaptive,
    Parallel,
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
)
from sfumato.privacy.event.sampling_designs import (
    Design,
    FixedSample,
    PoissonSample,
    WithReplacementSample,
)
from sfumato.privacy.event.serialization import VERSION, Json, event_from_json, event_to_json

__all__ = [
    "VERSION",
    "AdditiveNoise",
    "ApproxEvent",
    "BoundedRange",
    "Composed",
    "ContinuousLaw",
    "ContinuousNoise",
    "Design",
    "Event",
    "FixedSample",
    "Group",
    "Json",
    "NoisyMax",
    "Nonadaptive",
    "Parallel",
    "PoissonSample",
    "PureEvent",
    "RandomizedResponse",
    "Repeated",
    "Rule",
    "Sampled",
    "Selection",
    "Shuffled",
    "SparseVector",
    "Stream",
    "Thresholded",
    "WithReplacementSample",
    "event_from_json",
    "event_to_json",
]
