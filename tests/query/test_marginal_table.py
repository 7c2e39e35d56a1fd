# SPDX-License-Identifier: Apache-2.0
"""Tables of noisy counts: their numbers, their error, and what they become."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse
from sfumato.query.marginal_table import Marginals
from tests.contracts.people import FRAME, session

# the noise is zero, but for a chance below 1e-50
EXACTLY = {"epsilon": 10_000}
BY = [("sex", "smoker"), ("age",), ("smoker",)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Marginals:
    with session(tmp_path_factory.mktemp("marginals")) as opened:
        return opened.marginals("people", BY, **EXACTLY)


def test_counts_are_those_of_the_table(found: Marginals) -> None:
    by_both = found["sex", "smoker"]
    assert by_both.clique == ("sex", "smoker")
    # female, male, missing by no, yes, missing
    assert by_both.counts.tolist() == [[10, 10, 0], [20, 0, 0], [0, 0, 0]]
    ages = np.bincount(FRAME["age"].to_numpy(), minlength=101)
    assert found["age",].counts.tolist() == ages.tolist()
    assert [float(each.counts.sum()) for each in found] == [40, 40, 40]


def test_marginals_agree_where_units_are_weighed(tmp_path: Path) -> None:
    rows = pa.table({"person": ["a"] * 3 + ["b"], "sex": ["F", "F", "M", "M"]})
    table = sf.Table(
        rows, unit=sf.Unit("person", max_rows_total=2), columns={"sex": sf.Category("F", "M")}
    )
    with sf.connect(
        {"people": table}, dataset="few", budget=sf.Budget(10**6), ledger=tmp_path / "l.db"
    ) as opened:
        (one,) = opened.marginals("people", [("sex",)], epsilon=10_000)
    assert one.counts.tolist() == pytest.approx([4 / 3, 5 / 3, 0], abs=0.01)


def test_rows_of_an_arrow_table_are_cells(found: Marginals) -> None:
    one = found["smoker",].to_arrow()
    assert one.column_names == ["smoker", "n", "n_low", "n_high"]
    assert one["smoker"].to_pylist() == [False, True, None]
    whole = found.to_arrow()
    assert whole.column_names == ["marginal", "sex", "age", "smoker", "n", "n_low", "n_high"]
    assert whole.num_rows == 9 + 101 + 3
    assert pa.ipc.open_stream(found.to_arrow_bytes()).read_all() == whole
    assert set(whole["marginal"].to_pylist()) == {"sex, smoker", "age", "smoker"}


def test_the_error_is_that_of_the_noise(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        (one,) = opened.marginals("people", [("age",)], rho="0.02")
    # sigma = 5: 1.96 sigma is 9.8
    assert one.error() == 10
    assert one.error("0.5") == 3
    low, n, high = (one.to_arrow()[name].to_numpy() for name in ("n_low", "n", "n_high"))
    assert set(high - n) == set(n - low) == {10}


def test_json_has_all_of_it(found: Marginals) -> None:
    form = found.to_json()
    assert form["charge_id"] == found.charge_id
    assert form["cost"]["epsilon"] == "10000"
    assert [each["by"] for each in form["marginals"]] == [["sex", "smoker"], ["age"], ["smoker"]]
    assert form["marginals"][2]["counts"] == [30, 10, 0]


def test_a_plot_has_a_bar_for_each_cell(found: Marginals) -> None:
    assert found.plot().svg.count("<rect x=") >= 9
    assert "missing" in found["smoker",].plot().svg


def test_too_many_bars_are_refused(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        many = opened.marginals("people", [("sex", "age")], **EXACTLY)
    with pytest.raises(WrongUse, match="303"):
        many.plot()


def test_only_what_was_asked_is_there(found: Marginals) -> None:
    assert len(found) == 3
    with pytest.raises(UnknownName):
        found["smoker", "sex"]


def test_axes_may_be_called_like_the_counts(tmp_path: Path) -> None:
    names = ["n", "n_low", "marginal", "n_"]
    rows = pa.table({name: [0, 1, 1] for name in names})
    table = sf.Table(rows, columns=dict.fromkeys(names, sf.Integer(0, 1)))
    with sf.connect(
        {"t": table}, dataset="few", budget=sf.Budget(10**6), ledger=tmp_path / "l.db"
    ) as opened:
        found = opened.marginals("t", [("n", "marginal"), ("n_low",), ("n_",)], **EXACTLY)
    whole = found.to_arrow()
    assert whole.column_names == [
        "marginal__",
        "n",
        "n_low",
        "marginal",
        "n_",
        "n__",
        "n_low__",
        "n_high__",
    ]
    assert whole["n"].to_pylist()[:9] == [0, 0, 0, 1, 1, 1, None, None, None]
    assert whole["n__"].to_pylist()[-3:] == [1, 2, 0]
    assert repr(found["n_low"]).splitlines()[2].split() == ["0", "1"]
    assert "n__: +-0 in 95%" in repr(found)


def test_few_marginals_are_printed(found: Marginals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.query.marginal_table._TABLES", 2)
    shown = repr(found)
    assert shown.count("in 95% of answers") == 2 and shown.endswith("... 1 more marginals")


def test_one_axis_may_be_named_alone(found: Marginals) -> None:
    assert found["age"].clique == found["age",].clique == found[["age"]].clique == ("age",)


@pytest.mark.parametrize(
    "clique", ["sexsmoker", 0, None, slice(None), ("smoker", "sex"), ["sex"], {"age"}]
)
def test_another_clique_is_not_there(found: Marginals, clique: object) -> None:
    with pytest.raises(UnknownName):
        found[clique]


def test_few_cells_are_printed(found: Marginals) -> None:
    text = repr(found)
    assert "more cells" in text and "95% of answers" in text
    assert ["female", "False", "10"] in [line.split() for line in text.splitlines()]


def test_whole_counts_of_hundreds_are_printed_whole(tmp_path: Path) -> None:
    many = pa.concat_tables([FRAME] * 10)
    with session(tmp_path, many) as opened:
        text = repr(opened.marginals("people", [("sex",)], **EXACTLY))
    assert [line.split() for line in text.splitlines()[2:5]] == [
        ["female", "200"],
        ["male", "200"],
        ["missing", "0"],
    ]
