# SPDX-License-Identifier: Apache-2.0
"""Distances of rows from what was released."""

import numpy as np
import pytest

from sfumato import synthetic as sy
from sfumato.synthetic.quality import quality, said
from tests.synthetic.towns import session


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    with session(tmp_path_factory.mktemp("town")) as opened:
        yield sy.fit(opened, "people", rho=20).released


def real_cells(released):
    """The cells of the private rows themselves: the best rows that could be."""
    from tests.synthetic.towns import town

    rows, cells = town(), []
    for axis in released.base.schema.axes:
        values = rows[axis.name].to_pylist()
        if axis.name == "job":
            codes = np.array([axis.kind.labels.index(value) for value in values])
        else:
            codes = np.array(
                [round(value / float(getattr(axis.kind, "step", 1))) for value in values]
            )
        cells.append(np.searchsorted(axis.limits, codes, side="right") - 1)
    return np.stack(cells, axis=1)


def test_true_rows_are_off_by_the_noise_alone(released):
    found = quality(released, real_cells(released))
    for fit in (*found.singles, *found.pairs, *found.checks):
        # the number of rows is noisy too
        assert fit.distance < 2 * fit.noise + 0.005
        assert fit.off < 0.002
    # nobody has no job or no pay: no rest has but one value
    assert {name: rest for name, rest, _ in found.merged}["job"] == 0
    assert found.unmeasured == 6 - len(found.pairs)


def test_shuffled_rows_are_found_out_by_the_check(released):
    cells = real_cells(released)
    job = released.base.schema.place("job")
    cells[:, job] = np.random.default_rng(1).permutation(cells[:, job])
    found = quality(released, cells)
    # job goes with age and with pay: three of the four triples have it with one of them
    told = [fit for fit in found.checks if "job" in fit.columns and {"age", "pay"} & {*fit.columns}]
    assert any(len(fit.columns) == 3 for fit in told)
    assert all(fit.off > 0.01 and fit.distance > 2 * fit.noise for fit in told)


def test_associations_are_those_of_the_rows(released):
    found = quality(released, real_cells(released)).associations
    places = {name: released.base.schema.place(name) for name in ("age", "job", "pay", "rich")}
    # pay names the job; whether someone is rich has nothing to do with the smith's pay
    assert found[places["job"], places["pay"]] > 0.95
    assert found[places["rich"], places["job"]] < 0.4
    assert np.allclose(found, found.T) and np.allclose(np.diag(found), 1)


def test_no_rows_are_no_error(released):
    found = quality(released, np.zeros((0, 4), np.int64))
    assert all(fit.distance > 0.4 for fit in found.pairs)


def test_a_year_is_no_thousand() -> None:
    assert [said(each) for each in (1900, -0.5, 76_000)] == ["1900", "-0.5", "76,000"]


def test_ranges_are_those_of_bins_and_what_was_not_measured_is_named(released):
    found = quality(released, real_cells(released))
    ranges = {each.column: each for each in found.ranges}
    assert set(ranges) == {"age", "pay"} and ranges["age"].rows == ("0", "99")
    # pay is from 0 to 69,999 of 100,000 declared; the cut is one bin farther out
    assert ranges["pay"].is_cut and not ranges["age"].is_cut
    assert 70_000 <= float(ranges["pay"].rows[1].replace(",", "")) < 80_000
    named = {frozenset(pair) for pair in found.missed}
    for each in released.pairs:
        assert frozenset(each.columns) not in named
    assert len(named) == 6 - len(released.pairs)
