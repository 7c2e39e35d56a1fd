# SPDX-License-Identifier: Apache-2.0
"""The passes of the compiler, one in each file: functions from a plan to a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs of the compiler passes besides the plan: the declarations, and the norm of the
    noise.

    ``kept`` maps each table with a prepared layout to the most rows of a unit in that layout.
    """

    dataset: Dataset
    norm: Norm
    kept: Mapping[str, int] = field(default_factory=dict)
