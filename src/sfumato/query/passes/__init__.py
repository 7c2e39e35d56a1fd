# SPDX-License-Identifier: Apache-2.0
"""One pass a file, each a function from a plan to a plan closer to release."""

from dataclasses import dataclass

from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm


@dataclass(frozen=True, slots=True)
class Context:
    """What the passes may know: the declarations, and the norm of the noise to come."""

    dataset: Dataset
    norm: Norm
