# SPDX-License-Identifier: Apache-2.0
"""Mechanisms: how a statistic is released, at what privacy cost, and with what error bound.

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
    rounded_gaussian,
    staircase,
)
from sfumato.mechanisms.bernstein import Interval, Statistic
from sfumato.mechanisms.blur import Blur
from sfumato.mechanisms.bounds import ApproximateBounds, bounds
from sfumato.mechanisms.moments import (
    Clipped,
    ClippedMoment,
    Moment,
    clipped_mean,
    clipped_variance,
    mean,
    variance,
)
from sfumato.mechanisms.noisy_max import NoisyMaxMechanism, Winner, report_noisy_max
from sfumato.mechanisms.quantile import Quantile, Quantiles, median, quantile, quantiles
from sfumato.mechanisms.representative import Mode, Representative, mode, representative
from sfumato.mechanisms.response import ResponseMechanism, randomized_response
from sfumato.mechanisms.rows import on_lattice
from sfumato.mechanisms.sampling import SamplingMechanism, sample_units
from sfumato.mechanisms.selection import SelectionMechanism, exponential, permute_and_flip
from sfumato.mechanisms.sparse import SparseSession, SparseVectorMechanism, Verdict, sparse_vector
from sfumato.mechanisms.threshold import (
    ThresholdMechanism,
    threshold_gaussian,
    threshold_geometric,
    threshold_laplace,
)
from sfumato.mechanisms.top_k import JointMechanism, PeelingMechanism, joint_top_k, peeled_top_k
from sfumato.mechanisms.vector import VectorMechanism, add_saturating, vector

__all__ = [
    "AdditiveMechanism",
    "ApproximateBounds",
    "Blur",
    "Clipped",
    "ClippedMoment",
    "Interval",
    "JointMechanism",
    "Mode",
    "Moment",
    "NoisyMaxMechanism",
    "PeelingMechanism",
    "Quantile",
    "Quantiles",
    "Representative",
    "ResponseMechanism",
    "SamplingMechanism",
    "SelectionMechanism",
    "SparseSession",
    "SparseVectorMechanism",
    "Statistic",
    "ThresholdMechanism",
    "VectorMechanism",
    "Verdict",
    "Winner",
    "add_saturating",
    "bounds",
    "calibrated_gaussian",
    "clipped_mean",
    "clipped_variance",
    "exponential",
    "gaussian",
    "geometric",
    "joint_top_k",
    "laplace",
    "mean",
    "median",
    "mode",
    "on_lattice",
    "peeled_top_k",
    "permute_and_flip",
    "quantile",
    "quantiles",
    "randomized_response",
    "report_noisy_max",
    "representative",
    "rounded_gaussian",
    "sample_units",
    "sparse_vector",
    "staircase",
    "threshold_gaussian",
    "threshold_geometric",
    "threshold_laplace",
    "variance",
    "vector",
]
