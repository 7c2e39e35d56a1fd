# SPDX-License-Identifier: Apache-2.0
"""Private answers: noise, event and error bound, together once.

May import: ``accounting``, ``metadata``, ``privacy``, ``noise``, ``exact``, ``errors``.
Begin with ``additive``: noise on integers, Laplace under an L1 and Gaussian under an L2
sensitivity.
"""

from sfumato.mechanisms.additive import (
    AdditiveMechanism,
    calibrated_gaussian,
    gaussian,
    geometric,
    laplace,
    staircase,
)
from sfumato.mechanisms.noisy_max import NoisyMaxMechanism, Winner, report_noisy_max
from sfumato.mechanisms.selection import SelectionMechanism, exponential, permute_and_flip
from sfumato.mechanisms.top_k import JointMechanism, PeelingMechanism, joint_top_k, peeled_top_k

__all__ = [
    "AdditiveMechanism",
    "JointMechanism",
    "NoisyMaxMechanism",
    "PeelingMechanism",
    "SelectionMechanism",
    "Winner",
    "calibrated_gaussian",
    "exponential",
    "gaussian",
    "geometric",
    "joint_top_k",
    "laplace",
    "peeled_top_k",
    "permute_and_flip",
    "report_noisy_max",
    "staircase",
]
