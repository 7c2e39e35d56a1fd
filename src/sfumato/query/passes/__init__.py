# SPDX-License-Identifier: Apache-2.0
"""One pass a file, each a function from a plan to a plan closer to release."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm


@dataclass(frozen=True, slots=True)
class Context:
    """What the passes may know: the declarations, and the norm of the noise to come.

    ``kept``: the tables with a prepared layout, and how many rows of a unit it has at most.
    """

    dataset: Dataset
    norm: Norm
    kept: Mapping[str, int] = field(default_factory=dict)
