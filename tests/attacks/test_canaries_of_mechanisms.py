# SPDX-License-Identifier: Apache-2.0
"""Rows that are handed to a mechanism, or to an answer, in the wrong place are not quoted by any
error.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import accounting, mechanisms, noise
from sfumato.exact import rational
from sfumato.metadata.column import Integer
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event.sampling_designs import PoissonSample
from sfumato.privacy.guarantee import PureDP, ZeroConcentratedDP
from tests.attacks.canaries import CANARY, Bird, attempt

Call = tuple[Callable[..., object], dict[str, object]]

ROWS = {"who": [f"{CANARY} {place}" for place in range(3)]}
# what prints itself: a frame of each kind, and a list of texts
BIRDS = [
    pd.DataFrame(ROWS),
    pa.table(ROWS),
    pl.DataFrame(ROWS),
    Bird(),
    [CANARY] * 3,
    {CANARY: CANARY},
]
ROW = Distance(Norm.L1, Fraction(1))
CELL = Distance(Norm.LINF, Fraction(1))
# What a law is asked.
LAW = {
    "sample": {"shape": 3},
    "pmf": {"x": 1},
    "cdf": {"x": 1},
    "above": {"x": 1},
    "tail": {"half_width": 1},
    "quantile": {"probability": "0.9"},
    "half_width": {"confidence": "0.9"},
}
LENGTH = Distance(Norm.L2, Fraction(1))
THRESHOLD = {"keys": 1, "epsilon": 1, "delta": "1e-6", "relation": sf.AddRemove}
WHOLE = {"distance": ROW, "epsilon": 1, "lower": 0, "upper": 8}


def makers() -> dict[str, Call]:
    """Each public function of ``mechanisms`` that is about rows, with arguments that are right."""
    return {
        "mean": (mechanisms.mean, WHOLE),
        "variance": (mechanisms.variance, WHOLE),
        "median": (mechanisms.median, WHOLE),
        "quantile": (mechanisms.quantile, {**WHOLE, "q": "0.5"}),
        "quantiles": (mechanisms.quantiles, {**WHOLE, "q": ["0.5"]}),
        "bounds": (mechanisms.bounds, {**WHOLE, "failure": "0.1"}),
        "mode": (mechanisms.mode, {"distance": ROW, "epsilon": 1, "candidates": ["a", "b"]}),
        "representative": (
            mechanisms.representative,
            {"distance": ROW, "epsilon": 1, "candidates": ["a", "b"], "far": lambda one, row: 1, "cap": 4},
        ),
        "vector": (mechanisms.vector, {"distance": ROW, "cells": 3, "epsilon": 1}),
        "add_saturating": (mechanisms.add_saturating, {"exact": [1], "noise": [1]}),
        "on_lattice": (mechanisms.on_lattice, {"values": [1], "within": Integer(0, 9), "imputed": 1}),
        "report_noisy_max": (mechanisms.report_noisy_max, {"distance": CELL, "epsilon": 1}),
        "randomized_response": (mechanisms.randomized_response, {"epsilon": 1, "categories": 3}),
        "laplace": (mechanisms.laplace, {"distance": ROW, "epsilon": 1}),
        "geometric": (mechanisms.geometric, {"distance": ROW, "epsilon": 1}),
        "staircase": (mechanisms.staircase, {"distance": CELL, "epsilon": 1}),
        "gaussian": (mechanisms.gaussian, {"distance": LENGTH, "rho": 1}),
        "calibrated_gaussian": (mechanisms.calibrated_gaussian, {"distance": LENGTH, "epsilon": 1, "delta": "1e-6"}),
        "exponential": (mechanisms.exponential, {"distance": CELL, "epsilon": 1}),
        "permute_and_flip": (mechanisms.permute_and_flip, {"distance": CELL, "epsilon": 1}),
        "joint_top_k": (mechanisms.joint_top_k, {"distance": CELL, "k": 2, "epsilon": 1}),
        "peeled_top_k": (mechanisms.peeled_top_k, {"distance": CELL, "k": 2, "epsilon": 1}),
        "sparse_vector": (
            mechanisms.sparse_vector, {"distance": CELL, "epsilon": 1, "threshold": 3, "positives": 2}
        ),
        "threshold_laplace": (mechanisms.threshold_laplace, THRESHOLD),
        "threshold_geometric": (mechanisms.threshold_geometric, THRESHOLD),
        "threshold_gaussian": (
            mechanisms.threshold_gaussian, {"keys": 1, "rho": 1, "delta": "1e-6", "relation": sf.AddRemove}
        ),
        "sample_units": (mechanisms.sample_units, {"design": PoissonSample("0.5"), "units": [1, 2, 3]}),
    }  # fmt: skip


def handed(name: str, call: Callable[..., object], right: Mapping[str, object]) -> list[str]:
    """Where a canary is seen when rows are given for each argument in turn.

    In the place of a ``Distance`` or a type of column Python's own AttributeError holds them, and
    quotes nothing.
    """
    return [
        f"{name}({argument}={type(bird).__name__}): {each}"
        for argument in right
        for bird in BIRDS
        for each in attempt(lambda argument=argument, bird=bird: call(**{**right, argument: bird}))[
            1
        ]
        if argument not in ("distance", "within")
        or not each.startswith(("AttributeError.obj", "AttributeError holds"))
    ]


@pytest.mark.parametrize("name", makers())
def test_rows_in_the_place_of_a_parameter_are_not_quoted(name):
    assert handed(name, *makers()[name]) == []


def released() -> dict[str, object]:
    """Mechanisms that take rows."""
    skipped = ("add_saturating", "on_lattice", "randomized_response", "sample_units")
    return {name: call(**right) for name, (call, right) in makers().items() if name not in skipped}


@pytest.mark.parametrize("name", released())
def test_rows_that_cannot_be_released_are_not_quoted(name):
    release = released()[name].release
    (first, *_) = inspect.signature(release).parameters
    assert handed(name, release, {first: [1, 2, 3]}) == []


def test_rows_that_a_sparse_vector_is_asked_are_not_quoted():
    open_session = mechanisms.sparse_vector(CELL, 1, 3, 10**6).open
    assert handed("ask", lambda answer: open_session().ask(answer), {"answer": 1}) == []


@pytest.mark.parametrize("name", makers())
def test_rows_that_a_mechanism_is_asked_about_are_not_quoted(name):
    call, right = makers()[name]
    made = call(**right)
    right = {
        "confidence": "0.9",
        "candidates": 4,
        "queries": 4,
        "distance": ROW,
        "units": 4,
        "low": 0,
        "high": 1,
    }
    for asked in ("error", "event", "shown", "smallest_shown", "draw"):
        method = getattr(made, asked, None)
        if callable(method):
            taken = [each for each in inspect.signature(method).parameters if each in right]
            assert handed(f"{name}.{asked}", method, {each: right[each] for each in taken}) == []


def laws() -> dict[str, Call]:
    """Each public function of ``noise``, with arguments that are right."""
    return {
        "Bernoulli": (noise.Bernoulli, {"probability": "0.5"}),
        "BernoulliExp": (noise.BernoulliExp, {"gamma": 1}),
        "BernoulliLogistic": (noise.BernoulliLogistic, {"gamma": 1, "odds": 1}),
        "Binomial": (noise.Binomial, {"trials": 4, "probability": "0.5"}),
        "DiscreteGaussian": (noise.DiscreteGaussian, {"sigma": 2}),
        "DiscreteLaplace": (noise.DiscreteLaplace, {"scale": 2}),
        "DiscreteStaircase": (noise.DiscreteStaircase, {"epsilon": 1, "sensitivity": 4, "step": 2}),
        "Geometric": (noise.Geometric, {"scale": 2}),
        "NegativeBinomial": (noise.NegativeBinomial, {"shape": 1, "stop": "0.1"}),
        "RoundedGaussian": (noise.RoundedGaussian, {"sigma": 2}),
        "Skellam": (noise.Skellam, {"rate": 2}),
        "Truncated": (
            noise.Truncated,
            {"whole": noise.DiscreteLaplace(2), "lower": -4, "upper": 4},
        ),
        "below_many": (noise.below_many, {"bound": 4, "shape": 3}),
        "permutation": (noise.permutation, {"n": 4}),
        "subset": (noise.subset, {"n": 4, "k": 2}),
        "random_bits": (noise.random_bits, {"count": 4, "bias": lambda level: (1, 2)}),
    }


def test_every_function_of_noise_is_handed_rows():
    assert {*laws()} == {*noise.__all__} - {
        "SYSTEM",
        "Entropy",
        "Integers",
        "Law",
        "Noise",
        "Shape",
    }


@pytest.mark.parametrize("name", laws())
def test_rows_in_the_place_of_a_number_of_a_law_are_not_quoted(name):
    call, right = laws()[name]
    found = handed(name, call, right)
    law = call(**right)
    for asked, arguments in LAW.items():
        method = getattr(law, asked, None)
        found += handed(f"{name}.{asked}", method, arguments) if callable(method) else []
    assert found == []


def accountants() -> dict[str, Call]:
    """Each public function of ``accounting``, with arguments that are right."""
    law, event = noise.DiscreteGaussian(2), mechanisms.laplace(ROW, 1).event(ROW)
    return {
        "account": (accounting.account, {"event": event}),
        "charge_for": (accounting.charge_for, {"profile": accounting.account(event)}),
        "approx_from_zcdp": (
            accounting.approx_from_zcdp, {"guarantee": ZeroConcentratedDP(Fraction(1)), "delta": Fraction(1, 10)}
        ),
        "zcdp_from_pure": (accounting.zcdp_from_pure, {"guarantee": PureDP(Fraction(1))}),
        "gaussian_delta": (accounting.gaussian_delta, {"noise": law, "sensitivity": 1, "epsilon": 1}),
        "gaussian_for": (accounting.gaussian_for, {"epsilon": 1, "delta": "1e-6", "sensitivity_squared": Fraction(1)}),
        "split": (accounting.split, {"total": Fraction(1), "weights": [Fraction(1)], "norm": Norm.L1}),
        "Charge": (accounting.Charge, {"epsilon": 1, "rho": 1, "delta": 0}),
        "Gates": (accounting.Gates, {"epsilon": 1, "rho": 1, "delta_events": 0, "order": Fraction(2)}),
        "Profile": (accounting.Profile, {"epsilon": Fraction(1), "rho": Fraction(1), "delta": Fraction(0)}),
    }  # fmt: skip


def test_every_function_of_accounting_is_handed_rows():
    assert {*accountants()} == {*accounting.__all__}


@pytest.mark.parametrize("name", accountants())
def test_rows_in_the_place_of_an_event_or_a_number_are_not_quoted(name):
    assert [
        each for each in handed(name, *accountants()[name]) if "AttributeError" not in each
    ] == []


def test_a_law_that_quotes_its_argument_is_seen(monkeypatch):
    monkeypatch.setattr(
        rational, "_not_a_number", lambda name, given: ValueError(f"{name}: {BIRDS[0]}")
    )
    assert handed("DiscreteLaplace", *laws()["DiscreteLaplace"])


def test_arguments_of_answers_and_previews_are_not_quoted(tmp_path):
    people = sf.Table(pa.table({"age": [1, 2, 3]}), columns={"age": sf.Integer(0, 9)})
    with sf.connect(
        {"t": people}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l.db"
    ) as session:
        answer = session.query("SELECT COUNT(*) FROM t", epsilon=1)
        preview = session.preview("SELECT COUNT(*) FROM t", epsilon=1)
    found = handed("answer.error", answer.error, {"confidence": "0.9"})
    found += handed("answer.plot", answer.plot, {"column": None})
    found += handed("preview.error", preview.error, {"confidence": "0.9"})
    assert found == []


def test_a_mechanism_that_quotes_its_argument_is_seen(monkeypatch):
    monkeypatch.setattr(sys.modules["sfumato.mechanisms.representative"], "shown", repr)
    assert handed("representative", *makers()["representative"])
