# SPDX-License-Identifier: Apache-2.0
"""Marginals as a task: what they cost, what names them, what is refused free."""

import json
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.engines.cube import Coded
from sfumato.errors import (
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    MissingDeclaration,
    SfumatoError,
    UnknownName,
    WrongUse,
)
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.curator import Curator
from sfumato.query.marginals import MarginalsTask, marginals_task
from tests.contracts.people import dataset, session
from tests.contracts.tasks import plan_of

TWO = sf.Unit("person", max_rows_total=2)
BY = [("sex", "smoker"), ("age",)]


def task(cliques: object = BY, **stated: object) -> MarginalsTask:
    return marginals_task(dataset(unit=TWO), "people", cliques, allowance(**(stated or {"rho": 1})))


def test_marginals_cost_what_was_stated_and_are_stored_once(tmp_path: Path) -> None:
    with session(tmp_path, unit=TWO) as opened:
        first, again = (opened.marginals("people", BY, rho="0.5") for _ in range(2))
        assert (again.stored.body, again.recalled, again.charge_id) == (
            first.stored.body,
            True,
            first.charge_id,
        )
        assert opened.budget.spent_rho == "0.5"
        assert opened.price(first.task).rho == "0.5"
        opened.marginals("people", BY, epsilon="0.25")
        # two marginals of an eighth each: 2 (1/8)^2 / 2 more
        assert opened.budget.spent_rho == "0.515625"
        assert opened.verify().charges == 2


def test_the_log_says_what_was_counted(tmp_path: Path) -> None:
    with session(tmp_path, unit=TWO) as opened:
        opened.marginals("people", BY, rho="0.5")
        entries = [
            json.loads(each.body)
            for each in opened._ledger.store.read(
                lambda rows: list(rows.entries(opened.dataset.name))
            )
        ]
    said = [(each["kind"], each["line"]) for each in entries if "line" in each]
    assert said == [("marginals", "people: sex x smoker; age")]


def noises(cliques: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the noise of a marginal is worked out while so many are asked for and read."""
    made, original = [0], Allowance.noise

    def counted(self: Allowance, *given: object) -> object:
        made[0] += 1
        return original(self, *given)

    monkeypatch.setattr(Allowance, "noise", counted)
    by = [("sex",), ("smoker",), ("age",), ("sex", "smoker"), ("smoker", "age"), ("sex", "age")]
    folder = folder / str(cliques)
    folder.mkdir()
    with session(folder, unit=TWO) as opened:
        list(opened.marginals("people", by[:cliques], rho=1))
    monkeypatch.undo()
    return made[0]


def test_the_noise_is_not_worked_out_for_each_marginal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert noises(1, tmp_path, monkeypatch) == noises(6, tmp_path, monkeypatch)


def test_a_line_of_many_marginals_is_cut_off() -> None:
    names = list(dataset(unit=TWO).tables["people"].columns)
    known = task([(name,) for name in ("sex", "age", "smoker")])
    many = replace(known, cliques=tuple((name,) for name in names * 100))
    assert len(many.line) == 250
    assert replace(known, table="a\x00\n").line.startswith("a??: ")


def test_an_epsilon_with_a_delta_is_charged_as_a_rho(tmp_path: Path) -> None:
    with session(tmp_path, unit=TWO) as opened:
        opened.marginals("people", BY, epsilon=1, delta="1e-6")
        bought = allowance(epsilon=1, delta="1e-6").amount
        assert Fraction(opened.budget.spent_rho) == bought
        assert opened.budget.balance.spent.delta == 0


def test_a_refusal_names_the_largest_that_fits(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, "1e-6")) as opened:
        with pytest.raises(BudgetExceeded) as refused:
            opened.marginals("people", BY, epsilon=3, delta="1e-7")
        largest = refused.value.allowed.rpartition("epsilon=")[2].split(" ")[0]
        assert opened.budget.spent == "0"
        opened.marginals("people", BY, epsilon=largest, delta="1e-7")


def test_the_size_is_known_to_the_byte(tmp_path: Path) -> None:
    with session(tmp_path, unit=TWO) as opened:
        found = opened.marginals("people", BY, rho=1)
    assert len(found.stored.body) == found.task.size
    assert found.task.cells == (9, 101)


REFUSED = [
    ([], WrongUse),
    ("sex", WrongUse),
    (["sex"], WrongUse),
    ([("sex", "sex")], WrongUse),
    ([("sex", "age"), ("age", "sex")], WrongUse),
    ([(1,)], WrongUse),
    ([("age",)] * 10**5, WrongUse),
    ([("nobody",)], UnknownName),
    ([("job",)], MissingDeclaration),
    ([("hours", "age", "born", "sex", "smoker")], WrongUse),
    ([()], WrongUse),
]


@pytest.mark.parametrize(("cliques", "kind"), REFUSED, ids=lambda each: str(each)[:30])
def test_what_cannot_be_a_marginal_is_refused_free(
    tmp_path: Path, cliques: object, kind: type[SfumatoError]
) -> None:
    with session(tmp_path, unit=TWO) as opened:
        with pytest.raises(kind):
            opened.marginals("people", cliques, rho=1)
        assert opened.budget.spent == "0"


@pytest.mark.parametrize("table", ["nobody", None, ["people"]])
def test_a_table_that_is_not_declared_is_refused(tmp_path: Path, table: object) -> None:
    with session(tmp_path) as opened, pytest.raises(UnknownName):
        opened.marginals(table, BY, rho=1)


def test_a_unit_without_a_limit_is_told_which_to_declare(tmp_path: Path) -> None:
    unit = sf.Unit("person", max_rows=2)
    with (
        session(tmp_path, unit=unit) as opened,
        pytest.raises(MissingDeclaration, match="max_rows_total"),
    ):
        opened.marginals("people", BY, rho=1)


def test_noise_that_64_bits_do_not_hold_is_refused() -> None:
    with pytest.raises(WrongUse, match="56"):
        task(epsilon="1e-12")


def test_marginals_that_differ_in_anything_have_different_forms() -> None:
    one = task()
    others = [
        task([("sex", "smoker")]),
        task([("smoker", "sex"), ("age",)]),
        task(rho=2),
        task(epsilon=1),
        replace(one, table="others"),
        replace(one, dataset="other"),
        replace(one, protected=()),
        replace(one, plan=replace(one.plan, most=3)),
        replace(one, allowance=Allowance(Norm.L2, Fraction(1), Fraction(1, 2))),
    ]
    assert len({each.form for each in [one, *others]}) == len(others) + 1
    # every field is in the form
    assert {each.name for each in fields(MarginalsTask)} == {
        "allowance",
        "cliques",
        "dataset",
        "plan",
        "protected",
        "table",
    }


def test_marginals_planned_for_other_declarations_are_refused_free(tmp_path: Path) -> None:
    with session(tmp_path, unit=sf.Unit("person", max_rows_total=3)) as opened:
        with pytest.raises(WrongUse, match="other declarations"):
            opened.ask(task())
        assert opened.budget.spent == "0"


class Broken(MarginalsTask):
    """Measures its first marginal once more."""

    __slots__ = ()

    def run(self, curator: Curator) -> bytes:
        super().run(curator)
        return super().run(curator)


def test_a_marginal_more_is_forfeited(tmp_path: Path) -> None:
    one = task()
    broken = Broken(*(getattr(one, each.name) for each in fields(one)))
    with session(tmp_path, unit=TWO) as opened:
        with pytest.raises(EngineFailed):
            opened.ask(broken)
        assert opened.budget.spent_rho == "1"


def test_a_task_reads_the_cube_that_it_said(tmp_path: Path) -> None:
    class Other(MarginalsTask):
        __slots__ = ()

        def ready(self, declarations: object) -> object:
            return plan_of(unit=TWO)

    one = task()
    with session(tmp_path, unit=TWO) as opened, pytest.raises(EngineFailed):
        opened.ask(Other(*(getattr(one, each.name) for each in fields(one))))


FIVE = [("sex",), ("smoker",), ("age",), ("born",), ("hours",)]


@pytest.mark.parametrize(
    "failure", [OSError("disk full at 'p17'"), KeyboardInterrupt(), Cancelled(paid=True)], ids=repr
)
def test_a_failure_in_the_third_of_five_marginals_costs_all_five(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: BaseException,
) -> None:
    reads: list[object] = []
    honest = Coded.marginals

    def third(self: Coded, cliques: object) -> object:
        reads.append(cliques)
        if len(reads) == 3:
            raise failure
        return honest(self, cliques)

    told = {OSError: EngineFailed, KeyboardInterrupt: KeyboardInterrupt, Cancelled: Cancelled}[
        type(failure)
    ]
    with session(tmp_path, unit=TWO) as opened:
        with monkeypatch.context() as patch:
            patch.setattr(Coded, "marginals", third)
            with pytest.raises(told) as caught:
                opened.marginals("people", FIVE, rho=1)
        assert (len(reads), opened.budget.spent_rho) == (3, "1")
        assert "p17" not in str(caught.value) + caplog.text
        # the table of codes is gone, and the same marginals can be bought again
        found = opened._engine._connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'codes%'"
        )
        assert found.fetchone() == (0,)
        assert len(opened.marginals("people", FIVE, rho=1)) == 5
        assert opened.budget.spent_rho == "2"
