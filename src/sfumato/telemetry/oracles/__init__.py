# SPDX-License-Identifier: Apache-2.0
"""Frequency oracles: the mechanism by which one device reports a value, and its inverse.

Each file has one oracle, with a proof note. Begin with ``oracle`` (the interface), then
``category``.
"""

from sfumato.telemetry.oracles.attributes import AttributesOracle, attributes
from sfumato.telemetry.oracles.bit import BitOracle, bit
from sfumato.telemetry.oracles.category import CategoryOracle, category
from sfumato.telemetry.oracles.fragments import FragmentsOracle, fragments
from sfumato.telemetry.oracles.hashed import HashedOracle, hashed
from sfumato.telemetry.oracles.levels import LevelsOracle, levels
from sfumato.telemetry.oracles.mean import MeanOracle, mean
from sfumato.telemetry.oracles.oracle import Oracle
from sfumato.telemetry.oracles.prefixes import PrefixesOracle, prefixes
from sfumato.telemetry.oracles.projective import ProjectiveOracle, projective
from sfumato.telemetry.oracles.rappor import RapporOracle, rappor
from sfumato.telemetry.oracles.sketch import (
    SketchOracle,
    count_mean,
    hadamard_count_mean,
    sketch,
)
from sfumato.telemetry.oracles.unary import UnaryOracle, unary

__all__ = [
    "AttributesOracle",
    "BitOracle",
    "CategoryOracle",
    "FragmentsOracle",
    "HashedOracle",
    "LevelsOracle",
    "MeanOracle",
    "Oracle",
    "PrefixesOracle",
    "ProjectiveOracle",
    "RapporOracle",
    "SketchOracle",
    "UnaryOracle",
    "attributes",
    "bit",
    "category",
    "count_mean",
    "fragments",
    "hadamard_count_mean",
    "hashed",
    "levels",
    "mean",
    "prefixes",
    "projective",
    "rappor",
    "sketch",
    "unary",
]
