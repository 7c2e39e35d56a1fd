# SPDX-License-Identifier: Apache-2.0
"""The union type of the oracles that count values by support (``oracle``)."""

from typing import TypeAlias

from sfumato.telemetry.oracles.bit import BitOracle
from sfumato.telemetry.oracles.category import CategoryOracle
from sfumato.telemetry.oracles.hashed import HashedOracle
from sfumato.telemetry.oracles.projective import ProjectiveOracle
from sfumato.telemetry.oracles.unary import UnaryOracle

FREQUENCY = (CategoryOracle, ProjectiveOracle, BitOracle, HashedOracle, UnaryOracle)
FrequencyOracle: TypeAlias = (
    CategoryOracle | ProjectiveOracle | BitOracle | HashedOracle | UnaryOracle
)
