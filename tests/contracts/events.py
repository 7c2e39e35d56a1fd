# SPDX-License-Identifier: Apache-2.0
"""Every kind of event: its JSON forms, an example that has a cost, and its neighbours."""

from fractions import Fraction

from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    ApproxEvent,
    BestOf,
    Block,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Event,
    FixedSample,
    Group,
    NoisyMax,
    Nonadaptive,
    Norm,
    Parallel,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Relation,
    Repeated,
    Rule,
    Sampled,
    Selection,
    SharedNoise,
    Shuffled,
    SparseVector,
    Stream,
    Thresholded,
    WithReplacementSample,
)
from sfumato.privacy.event import (
    BitReport,
    CategoryReport,
    ChosenReport,
    HashedReport,
    JointReport,
    LineReport,
    ProjectiveReport,
    UnaryReport,
    WindowReport,
)

QUARTER = 1 << 62

# Every kind as version 1 writes it, with all that can be said and with as little as possible: for
# ever.
LAPLACE = {"law": "discrete_laplace", "scale": "5/2"}
SUM = {"kind": "additive_noise", "version": 1, "noise": LAPLACE, "norm": "L1", "sensitivity": "1"}
COUNT = SUM | {"norm": "Linf", "relation": "replace-one", "cells": 4}
REAL = {
    "kind": "continuous_noise",
    "version": 1,
    "law": "gaussian",
    "scale": "11/10",
    "norm": "L2",
    "sensitivity": "25",
}
ONE = Distance(Norm.L1, Fraction(1))
EACH = Distance(Norm.LINF, Fraction(1), Relation.REPLACE_ONE)
NOISE = DiscreteLaplace("5/2")
FORMS = {
    "additive": (SUM, AdditiveNoise(NOISE, ONE)),
    "gaussian": (
        SUM
        | {
            "noise": {"law": "discrete_gaussian", "sigma_squared": "7/3"},
            "norm": "L2",
            "sensitivity": "25",
        },
        AdditiveNoise(DiscreteGaussian(sigma_squared="7/3"), Distance(Norm.L2, Fraction(25))),
    ),
    "cells": (COUNT, AdditiveNoise(NOISE, EACH, 4)),
    "exponential": (
        {
            "kind": "selection",
            "version": 1,
            "rule": "exponential",
            "rate": "1/3",
            "norm": "Linf",
            "sensitivity": "2",
            "monotone": True,
        },
        Selection(
            Rule.EXPONENTIAL, Fraction(1, 3), Distance(Norm.LINF, Fraction(2)), monotone=True
        ),
    ),
    "permute and flip": (
        {
            "kind": "selection",
            "version": 1,
            "rule": "permute_and_flip",
            "rate": "3",
            "norm": "Linf",
            "sensitivity": "1",
            "relation": "replace-one",
        },
        Selection(Rule.PERMUTE_AND_FLIP, Fraction(3), EACH),
    ),
    "noisy max": (
        {
            "kind": "noisy_max",
            "version": 1,
            "noise": LAPLACE,
            "norm": "Linf",
            "sensitivity": "1",
            "gap": True,
        },
        NoisyMax(NOISE, Distance(Norm.LINF, Fraction(1)), gap=True),
    ),
    "sparse vector": (
        {
            "kind": "sparse_vector",
            "version": 1,
            "threshold_noise": LAPLACE,
            "query_noise": {"law": "discrete_laplace", "scale": "9"},
            "norm": "Linf",
            "sensitivity": "1",
            "relation": "replace-one",
            "positives": 3,
            "monotone": True,
            "gap": True,
        },
        SparseVector(NOISE, DiscreteLaplace(9), EACH, 3, monotone=True, gap=True),
    ),
    "shared": (
        {
            "kind": "shared_noise",
            "version": 1,
            "noise": {"law": "discrete_gaussian", "sigma_squared": "7/3"},
            "least": 4,
            "colluders": 1,
            "norm": "L2",
            "sensitivity": "25",
            "cells": 5,
            "overlap": 2,
            "roster": "5a" * 32,
        },
        SharedNoise(
            DiscreteGaussian(sigma_squared="7/3"),
            4,
            1,
            Distance(Norm.L2, Fraction(25)),
            5,
            2,
            "5a" * 32,
        ),
    ),
    "response": (
        {"kind": "randomized_response", "version": 1, "epsilon": "1/2", "categories": 3},
        RandomizedResponse(Fraction(1, 2), 3),
    ),
    "threshold": (
        {"kind": "thresholded", "version": 1, "additive": COUNT, "threshold": 40, "keys": 2},
        Thresholded(AdditiveNoise(NOISE, EACH, 4), 40, 2),
    ),
    "poisson": (
        {
            "kind": "sampled",
            "version": 1,
            "design": {"design": "poisson", "rate": "1/100"},
            "event": SUM,
        },
        Sampled(PoissonSample(Fraction(1, 100)), AdditiveNoise(NOISE, ONE)),
    ),
    "fixed": (
        {
            "kind": "sampled",
            "version": 1,
            "design": {"design": "fixed", "size": 5, "population": 100},
            "event": COUNT,
        },
        Sampled(FixedSample(5, 100), AdditiveNoise(NOISE, EACH, 4)),
    ),
    "with replacement": (
        {
            "kind": "sampled",
            "version": 1,
            "design": {"design": "with_replacement", "size": 500, "population": 100},
            "event": COUNT,
        },
        Sampled(WithReplacementSample(500, 100), AdditiveNoise(NOISE, EACH, 4)),
    ),
    "continuous": (
        REAL,
        ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(11, 10), Distance(Norm.L2, Fraction(25))),
    ),
    "continuous laplace": (
        REAL | {"law": "laplace", "norm": "L1", "relation": "replace-one"},
        ContinuousNoise(
            ContinuousLaw.LAPLACE,
            Fraction(11, 10),
            Distance(Norm.L1, Fraction(25), Relation.REPLACE_ONE),
        ),
    ),
    "bounded range": (
        {"kind": "bounded_range", "version": 1, "eta": "1/3", "relation": "replace-one"},
        BoundedRange(Fraction(1, 3), Relation.REPLACE_ONE),
    ),
    "pure": ({"kind": "pure", "version": 1, "epsilon": "2"}, PureEvent(Fraction(2))),
    "approximate": (
        {
            "kind": "approximate",
            "version": 1,
            "epsilon": "2",
            "delta": "1/1000000",
            "relation": "replace-one",
        },
        ApproxEvent(Fraction(2), Fraction(1, 10**6), Relation.REPLACE_ONE),
    ),
    "shuffled": (
        {
            "kind": "shuffled",
            "version": 1,
            "event": {"kind": "randomized_response", "version": 1, "epsilon": "4", "categories": 2},
            "reports": 1000000,
        },
        Shuffled(RandomizedResponse(Fraction(4), 2), 10**6),
    ),
    "group": (
        {"kind": "group", "version": 1, "event": SUM, "size": 4},
        Group(AdditiveNoise(NOISE, ONE), 4),
    ),
    "stream": (
        {
            "kind": "stream",
            "version": 1,
            "noise": REAL,
            "steps": 100,
            "column": "5",
            "participations": 5,
            "separation": 20,
        },
        Stream(
            ContinuousNoise(
                ContinuousLaw.GAUSSIAN, Fraction(11, 10), Distance(Norm.L2, Fraction(25))
            ),
            100,
            Fraction(5),
            participations=5,
            separation=20,
        ),
    ),
    "composed": (
        {"kind": "composed", "version": 1, "events": [SUM, COUNT]},
        Composed((AdditiveNoise(NOISE, ONE), AdditiveNoise(NOISE, EACH, 4))),
    ),
    "parallel": (
        {"kind": "parallel", "version": 1, "events": [SUM, COUNT]},
        Parallel((AdditiveNoise(NOISE, ONE), AdditiveNoise(NOISE, EACH, 4))),
    ),
    "nonadaptive": (
        {"kind": "nonadaptive", "version": 1, "event": SUM},
        Nonadaptive(AdditiveNoise(NOISE, ONE)),
    ),
    "best of": (
        {"kind": "best_of", "version": 1, "events": [SUM], "shape": "0", "stop": "1/20"},
        BestOf((AdditiveNoise(NOISE, ONE),), Fraction(0), Fraction(1, 20)),
    ),
    "block": (
        {"kind": "block", "version": 1, "event": SUM, "epsilon": "1/2", "delta": "1/1000000"},
        Block(AdditiveNoise(NOISE, ONE), Fraction(1, 2), Fraction(1, 10**6)),
    ),
    "repeated": (
        {"kind": "repeated", "version": 1, "event": SUM, "times": 9},
        Repeated(AdditiveNoise(NOISE, ONE), 9),
    ),
}

FORMS |= {
    "category report": (
        {
            "kind": "category_report",
            "version": 1,
            "truth": 2 * QUARTER,
            "other": QUARTER,
            "categories": 3,
        },
        CategoryReport(2 * QUARTER, QUARTER, 3),
    ),
    "hashed report": (
        {
            "kind": "hashed_report",
            "version": 1,
            "truth": 3 * QUARTER,
            "other": QUARTER,
            "buckets": 2,
        },
        HashedReport(3 * QUARTER, QUARTER, 2),
    ),
    "projective report": (
        {
            "kind": "projective_report",
            "version": 1,
            "near": 2 * QUARTER,
            "far": QUARTER,
            "prime": 2,
            "dimension": 2,
        },
        ProjectiveReport(2 * QUARTER, QUARTER, 2, 2),
    ),
    "unary report": (
        {
            "kind": "unary_report",
            "version": 1,
            "kept": 3 * QUARTER,
            "added": QUARTER,
            "bits": 32,
            "hashes": 2,
        },
        UnaryReport(3 * QUARTER, QUARTER, 32, 2),
    ),
    "bit report": (
        {"kind": "bit_report", "version": 1, "truth": 3 * QUARTER},
        BitReport(3 * QUARTER),
    ),
    "line report": (
        {"kind": "line_report", "version": 1, "low": QUARTER, "high": 3 * QUARTER},
        LineReport(QUARTER, 3 * QUARTER),
    ),
    "window report": (
        {
            "kind": "window_report",
            "version": 1,
            "near": QUARTER,
            "far": QUARTER // 2,
            "window": 3,
            "moves": 2,
        },
        WindowReport(QUARTER, QUARTER // 2, 3, 2),
    ),
    "chosen report": (
        {
            "kind": "chosen_report",
            "version": 1,
            "events": [
                {"kind": "bit_report", "version": 1, "truth": 3 * QUARTER},
                {"kind": "line_report", "version": 1, "low": QUARTER, "high": 2 * QUARTER},
            ],
            "weights": [QUARTER, 3 * QUARTER],
        },
        ChosenReport(
            (BitReport(3 * QUARTER), LineReport(QUARTER, 2 * QUARTER)), (QUARTER, 3 * QUARTER)
        ),
    ),
    "joint report": (
        {
            "kind": "joint_report",
            "version": 1,
            "events": [
                {"kind": "bit_report", "version": 1, "truth": 3 * QUARTER},
                {"kind": "line_report", "version": 1, "low": QUARTER, "high": 2 * QUARTER},
            ],
        },
        JointReport((BitReport(3 * QUARTER), LineReport(QUARTER, 2 * QUARTER))),
    ),
}
REPORTS = (
    CategoryReport(2 * QUARTER, QUARTER, 3),
    HashedReport(3 * QUARTER, QUARTER, 2),
    ProjectiveReport(2 * QUARTER, QUARTER, 2, 2),
    UnaryReport(2 * QUARTER, QUARTER, 8, 1),
    BitReport(3 * QUARTER),
    LineReport(QUARTER, 3 * QUARTER),
    WindowReport(QUARTER, QUARTER // 2, 3, 2),
    ChosenReport((BitReport(3 * QUARTER),), (4 * QUARTER,)),
    JointReport((BitReport(3 * QUARTER), BitReport(QUARTER))),
)

L1, L2, LINF = (Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2, Norm.LINF))

EACH_KIND: list[Event] = [
    AdditiveNoise(DiscreteLaplace(2), L1),
    ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(2), L1),
    Selection(Rule.EXPONENTIAL, Fraction(1, 2), LINF),
    NoisyMax(DiscreteLaplace(2), LINF),
    SparseVector(DiscreteLaplace(2), DiscreteLaplace(2), LINF, 1),
    RandomizedResponse(Fraction(1), 2),
    SharedNoise(DiscreteGaussian(2), 4, 1, L2, 5, 2, "5a" * 32),
    BoundedRange(Fraction(1)),
    PureEvent(Fraction(1)),
    ApproxEvent(Fraction(1), Fraction(1, 10**6)),
    Thresholded(AdditiveNoise(DiscreteLaplace(2), LINF, cells=1), 40, 1),
    Sampled(PoissonSample(Fraction(1, 2)), PureEvent(Fraction(1))),
    Shuffled(RandomizedResponse(Fraction(1), 2), 10),
    Group(PureEvent(Fraction(1)), 2),
    Stream(ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(2), L2), 4, Fraction(1)),
    Composed((PureEvent(Fraction(1)),)),
    Parallel((PureEvent(Fraction(1)),)),
    Repeated(PureEvent(Fraction(1)), 2),
    Nonadaptive(PureEvent(Fraction(1))),
    BestOf((PureEvent(Fraction(1)),), Fraction(0), Fraction(1, 20)),
    *REPORTS,
    Block(PureEvent(Fraction(1)), Fraction(1), Fraction(1, 10**6)),
]
ABOUT_VALUES = (RandomizedResponse, Shuffled, *map(type, REPORTS))
