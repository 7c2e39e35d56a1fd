# SPDX-License-Identifier: Apache-2.0
"""Several attributes: each value has one number, and each attribute is counted on its devices."""

import itertools

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration, TooFewReports, UnknownName, WrongUse
from sfumato.telemetry import Aggregator, Record, report_task, simulate, task_from_bytes
from sfumato.telemetry.oracles import attributes, category, levels, projective
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.testing import Replay

DECLARED = {"language": ["en", "de"], "age": sf.Integer(0, 9)}


def task(parts=None, **fields):
    oracle = attributes(parts or [category(3, 2), projective(10, 2)])
    usual = {"oracle": oracle, "start": 0, "periods": 1, "min_batch": 100}
    return report_task("both", "Which language, and how old?", DECLARED, **(usual | fields))


def test_every_value_has_one_number_whose_digits_are_its_attributes():
    made = task()
    domain, oracle = made.domain, made.oracle
    labels = itertools.product(*(part.labels for part in domain.domains))
    numbers = {domain.known(label): label for label in labels}
    assert sorted(numbers) == list(range(30)) and oracle.values == domain.size == 30
    for number, label in numbers.items():
        for place, part in enumerate(domain.domains):
            assert oracle.node(number, place) == part.known(label[place])
    every = np.arange(30)
    assert oracle.node(every, 1).tolist() == [oracle.node(number, 1) for number in range(30)]


def test_a_device_that_lacks_an_attribute_reports_as_well():
    domain = task().domain
    assert domain.number({"language": "de", "age": 4}) == domain.known(("de", 4))
    for held in (None, {}, {"age": "old"}, 7, {"language": "fr"}):
        assert domain.number(held) == domain.known(("(other)", 0))


def test_each_attribute_is_counted_on_the_devices_that_drew_it():
    counts = {("en", 3): 30_000, ("de", 3): 20_000, ("de", 9): 10_000}
    sums = simulate(task(), counts, entropy=Replay(4))
    language, age = sums.attribute("language"), sums.attribute("age", confidence="0.999999")
    assert language.reports + age.reports == 60_000 and abs(age.reports - 30_000) < 1000
    assert language.values == ("en", "de", "(other)")
    # half of the devices drew it
    assert np.abs(language.estimate - [15_000, 15_000, 0]).max() < 6 * 250 + 6 * 90
    assert abs(age.estimate[3] - 25_000) < 6 * age.standard_error[3] + 600
    again = Aggregator.from_bytes(sums.to_bytes())
    assert again.attribute("age").estimate.tolist() == age.estimate.tolist()


def test_the_task_and_the_oracle_have_forms():
    made = task(memory=1)
    assert task_from_bytes(made.to_bytes()) == made
    assert oracle_from_json(oracle_to_json(made.oracle)) == made.oracle
    assert isinstance(made.domain, Record)


def test_too_few_reports_of_an_attribute_are_not_looked_at():
    sums = simulate(task(), {("en", 3): 120}, entropy=Replay(1))
    with pytest.raises(TooFewReports):
        sums.attribute("age")
    with pytest.raises(UnknownName, match="language, age"):
        simulate(task(), {("en", 3): 500}).attribute("size")
    with pytest.raises(WrongUse, match="whose oracle is"):
        sums.estimate()
    for label in (("en",), "en", ("en", 3, 4), ("fr", 3)):
        with pytest.raises(UnknownName):
            simulate(task(), {label: 5})


@pytest.mark.parametrize(
    "make",
    [
        lambda: attributes([category(3, 1)]),
        lambda: attributes([category(3, 1), levels(8, 1)]),
        lambda: attributes([category(2, 1)] * 257),
        lambda: attributes([projective(1 << 20, 1)] * 3),
        lambda: task([category(10, 2), category(3, 2)]),
        lambda: report_task("t", "?", ["a"], oracle=task().oracle, start=0, periods=1),
        lambda: report_task("t", "?", {"a": ["x"]}, oracle=task().oracle, start=0, periods=1),
        lambda: Record(("a", "a"), task().domain.domains),
        lambda: Record(("a", ""), task().domain.domains),
        lambda: Record(("a", "b"), (task().domain, task().domain)),
    ],
)
def test_attributes_that_do_not_fit_are_refused(make):
    with pytest.raises(InvalidDeclaration):
        make()
