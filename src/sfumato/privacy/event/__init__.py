# SPDX-License-Identifier: Apache-2.0
"""What was done to the data, as data: ``kinds`` says it, ``form`` writes and reads it as JSON."""

from sfumato.privacy.event.form import VERSION, Json, event_from_json, event_to_json
from sfumato.privacy.event.kinds import (
    AdditiveNoise,
    Composed,
    Design,
    Event,
    FixedSample,
    NoisyMax,
    PoissonSample,
    RandomizedResponse,
    Repeated,
    Rule,
    Sampled,
    Selection,
    SparseVector,
    Thresholded,
)

__all__ = [
    "VERSION",
    "AdditiveNoise",
    "Composed",
    "Design",
    "Event",
    "FixedSample",
    "Json",
    "NoisyMax",
    "PoissonSample",
    "RandomizedResponse",
    "Repeated",
    "Rule",
    "Sampled",
    "Selection",
    "SparseVector",
    "Thresholded",
    "event_from_json",
    "event_to_json",
]
