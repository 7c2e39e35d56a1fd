# SPDX-License-Identifier: Apache-2.0
"""Ugly domains, epsilons, candidates and reports: refused by name, or taken and stated."""

import time

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration, InvalidNumber, TooFewReports, UnknownName, WrongUse
from sfumato.noise import SYSTEM
from sfumato.telemetry import Aggregator, Texts, candidates, oracles, report_task, simulate
from sfumato.telemetry.report import Layout

WHEN = {"start": 0, "periods": 1}


def test_a_list_of_one_value_is_that_value_or_another():
    task = report_task("t", "?", ["yes"], epsilon=1, **WHEN)
    assert task.domain.labels == ("yes", "(other)")
    assert task.oracle.kind == "category"
    with pytest.raises(InvalidDeclaration):
        report_task("t", "?", sf.Integer(3, 3), epsilon=1, **WHEN)


@pytest.mark.parametrize("oracle", [oracles.mean, oracles.levels, oracles.projective, oracles.bit])
def test_2_to_the_31_values_are_refused_before_anything_is_made_of_them(oracle):
    with pytest.raises(InvalidDeclaration):
        oracle(1 << 31, 1)


def test_a_domain_of_2_to_the_31_numbers_is_refused_with_the_remedy():
    with pytest.raises(InvalidDeclaration, match="coarser step"):
        report_task("t", "?", sf.Integer(0, (1 << 31) - 1), epsilon=1, **WHEN)


def test_the_value_that_comes_twice_is_named():
    with pytest.raises(InvalidDeclaration, match="'b' comes twice"):
        report_task("t", "?", ["a", "b", "c", "b"], epsilon=1, **WHEN)
    with pytest.raises(InvalidDeclaration, match=r"twice.*\n.*NFC"):
        report_task("t", "?", ["caf\u00e9", "cafe\u0301"], epsilon=1, **WHEN)
    with pytest.raises(InvalidDeclaration, match="without values"):
        report_task("t", "?", [], epsilon=1, **WHEN)


@pytest.mark.parametrize("epsilon", [0, "0", -1])
def test_an_epsilon_of_nothing_is_refused(epsilon):
    with pytest.raises(InvalidNumber, match="greater than 0"):
        report_task("t", "?", ["a", "b"], epsilon=epsilon, **WHEN)


@pytest.mark.parametrize("values", [2, 3, 1000])
@pytest.mark.parametrize("epsilon", ["1e-9", "100"])
def test_tiny_and_huge_epsilons_keep_their_bound(values, epsilon):
    for each in candidates(values, epsilon):
        assert 0 < each.variance < float("inf")
        task = report_task("t", "?", sf.Integer(0, values - 1), oracle=each.oracle, **WHEN)
        # nothing is less probable than 2^-64
        assert 0 < task.first_epsilon <= min(float(epsilon), 44.4)


@pytest.mark.parametrize("oracle", [oracles.sketch(2), oracles.rappor()])
def test_a_candidate_comes_once_in_any_unicode_form_and_there_is_one(oracle):
    memory = int(oracle.kind == "rappor")
    task = report_task("t", "?", Texts(), oracle=oracle, memory=memory, **WHEN)
    sums = simulate(task, {"caf\u00e9": 2000})
    with pytest.raises(WrongUse, match="comes twice"):
        sums.texts(["caf\u00e9", "tea", "cafe\u0301"])
    with pytest.raises(WrongUse, match="No candidates"):
        sums.texts([])
    with pytest.raises(UnknownName, match="no text"):
        sums.texts(["tea", 3])


def test_no_reports_and_reports_of_another_version_are_no_estimates():
    task = report_task("t", "?", ["a", "b"], epsilon=1, min_batch=2, **WHEN)
    layout = Layout.of(task)
    payload = task.oracle.encode_many(np.zeros(1, np.int64), SYSTEM)[0].tobytes()
    sums = Aggregator(task)
    assert sums.add_many([]) == 0
    with pytest.raises(TooFewReports, match="0 reports"):
        sums.estimate()
    known = [layout.report(0, bytes([number]) * 16, payload) for number in range(3)]
    later = [bytes([report[0] + 1]) + report[1:] for report in known]
    assert sums.add_many([*known, *later]) == 3
    assert sums.refused == {"task or version": 3}
    assert sums.estimate().reports == 3


@pytest.mark.long
def test_a_million_candidates_take_seconds():
    task = report_task("t", "?", Texts(), oracle=oracles.hadamard_count_mean(2), **WHEN)
    sums = simulate(task, {"yeet": 50_000})
    words = ["yeet", *(f"word {number}" for number in range(999_999))]
    before = time.process_time()
    found = sums.texts(words)
    assert time.process_time() - before < 60
    assert found.found("0.999999")[0] == "yeet"
