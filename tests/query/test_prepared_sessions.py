# SPDX-License-Identifier: Apache-2.0
"""Sessions over prepared layouts: what they answer, what they say, and what they refuse while it is
free.
"""

import os
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.config.load import load
from sfumato.engines import duckdb
from sfumato.errors import EngineFailed, InvalidSource
from tests.contracts.people import EXACTLY

# ann has nine rows, bob and eve one each
VISITS = [*(("ann", ward) for ward in "AAAABBBBB"), ("bob", "A"), ("eve", "B")]
COUNT, BY_WARD = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
)
UNITS = "SELECT ward, COUNT(DISTINCT person) AS n FROM visits GROUP BY ward"


def written(folder: Path, visits=VISITS) -> dict[str, sf.Table]:
    path = folder / "visits.csv"
    path.write_text(
        "\n".join(["person,ward", *(",".join(row) for row in visits)]), encoding="utf-8"
    )
    unit = sf.Unit("person", max_rows=2, max_groups=2)
    return {"visits": sf.Table(path, unit=unit, columns={"ward": sf.Category("A", "B")})}


@contextmanager
def opened(folder: Path, *, prepared: bool = True, visits=VISITS):
    tables = written(folder, visits)
    if prepared:
        sf.prepare(tables, dataset="clinic", folder=folder / "layouts")
    with session(folder, tables, prepared=prepared) as asked:
        yield asked


def session(folder: Path, tables, *, prepared: bool = True) -> sf.Session:
    place = folder / "layouts" if prepared else None
    ledger = folder / "ledger.db"
    return sf.connect(
        tables, dataset="clinic", ledger=ledger, budget=sf.Budget(10**6, "1e-6"), prepared=place
    )


def values(answer) -> list[object]:
    return [row[-1] for row in answer.rows]


def test_every_row_counts_up_to_the_limits(tmp_path: Path) -> None:
    with opened(tmp_path) as asked:
        # two of ann's rows in one group; four in all, by ward; her first two rows, by unit
        assert values(asked.query(COUNT, epsilon=EXACTLY)) == [4]
        assert sum(values(asked.query(BY_WARD, epsilon=EXACTLY))) == 6
        assert sum(values(asked.query(UNITS, epsilon=EXACTLY))) in (3, 4)
        none = asked.query(
            "SELECT COUNT(*) AS n FROM visits WHERE ward = 'A' AND ward = 'B'", epsilon=EXACTLY
        )
        assert values(none) == [0]


def test_the_answer_says_what_was_read(tmp_path: Path) -> None:
    with opened(tmp_path) as asked:
        answer = asked.query(BY_WARD, epsilon=1)
        assert (
            "The prepared layout of visits was read: no part needs more noise for it."
            in answer.form["notes"]
        )
        sample = "a sample by a keyed hash, fixed when the layout was prepared."
        assert f"At most 4 rows of a unit count in COUNT(*): {sample}" in answer.form["bounded"]
        assert any(
            "asking again does not average it out" in str(line) for line in answer.form["bias"]
        )
        source = asked.query(BY_WARD, rho=1)
        assert any(
            "was not read: its fixed sample would need more noise." in str(each)
            for each in source.form["notes"]
        )
        assert not any(
            "layout" in str(line) for line in [*source.form["bounded"], *source.form["bias"]]
        )
        assert "visits prepared" in asked.preview(BY_WARD, epsilon=1).statement
        assert "visits prepared" not in asked.preview(BY_WARD, rho=1).statement


def test_a_layout_is_another_plan_with_an_answer_of_its_own(tmp_path: Path) -> None:
    tables = written(tmp_path)
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    answers = []
    for prepared in (True, False, True):
        with session(tmp_path, tables, prepared=prepared) as asked:
            answers.append(asked.query(BY_WARD, epsilon=1))
            spent = asked.budget.spent
    assert answers[0].charge_id == answers[2].charge_id
    assert answers[0].charge_id != answers[1].charge_id
    assert spent == "2"


def test_a_wanted_error_may_be_met_by_a_layout(tmp_path: Path) -> None:
    with opened(tmp_path) as asked:
        answer = asked.query(COUNT, error=100, max_epsilon=10)
        assert any("was read" in str(note) for note in answer.form["notes"])


def test_nothing_that_is_free_depends_on_rows(tmp_path: Path) -> None:
    texts = []
    for name, visits in (("one", VISITS), ("other", [("zoe", "B")] * 50)):
        folder = tmp_path / name
        folder.mkdir()
        with opened(folder, visits=visits) as asked:
            previews = [asked.preview(sql, epsilon=1) for sql in (COUNT, BY_WARD, UNITS)]
            texts.append(
                [
                    (each.explain(), each.statement, each.error(), str(each.cost))
                    for each in previews
                ]
            )
    assert texts[0] == texts[1]


BY_HOME = (
    "SELECT h.town, COUNT(*) AS n FROM visits v JOIN homes h ON v.person = h.person GROUP BY h.town"
)


def with_homes(folder: Path) -> dict[str, sf.Table]:
    """Where people live: ann and bob in X, eve in Y."""
    path = folder / "homes.csv"
    path.write_text("person,town\nbob,X\neve,Y\nann,X\n", encoding="utf-8")
    homes = sf.Table(
        path, unit=sf.Unit("person", max_rows=1), columns={"town": sf.Category("X", "Y")}
    )
    return {**written(folder), "homes": homes}


def test_a_join_to_the_one_row_of_a_person_reads_both_layouts(tmp_path: Path) -> None:
    tables = with_homes(tmp_path)
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    with session(tmp_path, tables) as asked:
        # two of ann's rows, and that of bob
        assert asked.query(BY_HOME, epsilon=EXACTLY).rows == [["X", 3], ["Y", 1]]
        statement = asked.preview(BY_HOME, epsilon=1).statement
        assert "visits prepared" in statement and "homes prepared" in statement
        touched(tmp_path / "homes.csv")
        with pytest.raises(InvalidSource, match="'homes' is stale"):
            asked.query(BY_HOME.replace("GROUP", "WHERE v.ward = 'A' GROUP"), epsilon=1)


def town_tables(folder: Path) -> dict[str, sf.Table]:
    """Everybody is within the limits; one visit and one home are nobody's, and zoe has no home."""
    visits = [
        *(("ann", ward) for ward in "AABB"),
        ("bob", "A"),
        ("eve", "B"),
        ("zoe", "A"),
        (None, "A"),
    ]
    homes = [("eve", "Y"), ("bob", "X"), (None, "X"), ("max", "Y"), ("ann", "X")]
    declared = with_homes(folder)
    tables = {}
    for name, column, rows in (("visits", "ward", visits), ("homes", "town", homes)):
        path = folder / f"{name}.parquet"
        pq.write_table(
            pa.table(dict(zip(("person", column), zip(*rows, strict=True), strict=True))), path
        )
        tables[name] = replace(declared[name], source=path)
    return tables


LOOKED_UP = (
    "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT person) AS p FROM visits WHERE {} GROUP BY ward"
)
IN_X = "SELECT person FROM homes WHERE town = 'X'"
HOME = "SELECT 1 FROM homes h WHERE h.person = visits.person"
# counts of rows and of persons: ann has two of each ward, bob A, eve B; zoe A
FOUND = {
    f"person IN ({IN_X})": [["A", 3, 2], ["B", 2, 1]],
    f"person NOT IN ({IN_X})": [["A", 1, 1], ["B", 1, 1]],
    f"EXISTS ({HOME} AND h.town = 'Y')": [["A", 0, 0], ["B", 1, 1]],
    f"EXISTS ({HOME})": [["A", 3, 2], ["B", 3, 2]],
    f"NOT EXISTS ({HOME})": [["A", 1, 1], ["B", 0, 0]],
    f"NOT EXISTS ({HOME} AND h.town = 'X')": [["A", 1, 1], ["B", 1, 1]],
    f"person IN (SELECT person FROM homes WHERE NOT EXISTS ({HOME} AND h.town = 'Y'))".replace(
        "visits.person", "homes.person"
    ): [["A", 3, 2], ["B", 2, 1]],
}


@pytest.mark.parametrize("test", FOUND)
def test_units_that_are_looked_up_in_a_table_of_one_row_each_are_read_of_both_layouts(
    tmp_path: Path, test: str
) -> None:
    tables, sql = town_tables(tmp_path), LOOKED_UP.format(test)
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    for prepared in (True, False):
        with session(tmp_path, tables, prepared=prepared) as asked:
            answer = asked.query(sql, epsilon=EXACTLY)
            assert [
                [ward, round(rows), round(people)] for ward, rows, people in answer.rows
            ] == FOUND[test]
            read = "The prepared layout of visits, homes was read: no part needs more noise for it."
            assert (read in answer.form["notes"]) is prepared
            statement = asked.preview(sql, epsilon=1).statement
            assert ("visits prepared" in statement and "homes prepared" in statement) is prepared


def test_the_bias_says_what_one_row_of_a_unit_decides(tmp_path: Path) -> None:
    tables = town_tables(tmp_path)
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    line, below = (
        "Prepared layout: of homes one row of a unit is looked at",
        "COUNT(*): never above the raw count",
    )
    for prepared, negated in ((True, False), (True, True), (False, True)):
        sql = LOOKED_UP.format(f"person {'NOT ' * negated}IN ({IN_X})")
        with session(tmp_path, tables, prepared=prepared) as asked:
            lines = [str(each) for each in asked.query(sql, epsilon=1).form["bias"]]
        assert any(each.startswith(line) for each in lines) is prepared
        # whose home in X is not the row that is looked at counts where it should not
        assert any(each.startswith(below) for each in lines) is not (prepared and negated)


def test_where_a_unit_may_have_several_rows_it_is_looked_up_in_the_data(tmp_path: Path) -> None:
    tables = town_tables(tmp_path)
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    with session(tmp_path, tables) as asked:
        answer = asked.query(
            "SELECT COUNT(*) AS n FROM homes WHERE person IN (SELECT person FROM visits WHERE ward = 'B')",
            epsilon=EXACTLY,
        )
        assert values(answer) == [2]
        assert any("of visits it has a sample only" in str(each) for each in answer.form["notes"])


# --- stale ---------------------------------------------------------------------------------


def touched(path: Path) -> None:
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))


def test_a_stale_layout_is_refused_before_the_charge(tmp_path: Path) -> None:
    # of Parquet: CSV that has changed is refused until the session is opened again
    path = tmp_path / "visits.parquet"
    pq.write_table(
        pa.table(dict(zip(("person", "ward"), zip(*VISITS, strict=True), strict=True))), path
    )
    tables = {"visits": replace(written(tmp_path)["visits"], source=path)}
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    with session(tmp_path, tables) as asked:
        stored = asked.query(COUNT, epsilon=1)
        touched(path)
        with pytest.raises(InvalidSource, match="stale") as refusal:
            asked.query(BY_WARD, epsilon=1)
        assert "Run sfumato prepare again" in str(refusal.value)
        assert asked.budget.left == Fraction(10**6 - 1) and asked.budget.reserved == "0"
        # what is stored stays free, and what reads the source is answered
        assert asked.query(COUNT, epsilon=1).charge_id == stored.charge_id
        assert asked.query(BY_WARD, rho=1).rows
        assert asked.verify()


def test_a_stale_layout_is_refused_at_opening(tmp_path: Path) -> None:
    with opened(tmp_path):
        tables = written(tmp_path)
    touched(tmp_path / "visits.csv")
    with pytest.raises(InvalidSource, match="stale"):
        session(tmp_path, tables)
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    with session(tmp_path, tables) as asked:
        assert values(asked.query(COUNT, epsilon=EXACTLY)) == [4]


def test_data_that_changes_while_it_is_read_is_paid_for_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = duckdb._rows

    def rows(connection: object, statement: str) -> object:
        found = honest(connection, statement)
        touched(tmp_path / "visits.csv")
        return found

    with opened(tmp_path) as asked:
        monkeypatch.setattr(duckdb, "_rows", rows)
        with pytest.raises(EngineFailed) as failure:
            asked.query(COUNT, epsilon=1)
        assert str(failure.value) == str(EngineFailed())
        assert asked.budget.spent == "1"


def test_preparing_again_under_an_open_session_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path) as asked:
        sf.prepare(written(tmp_path), dataset="clinic", folder=tmp_path / "layouts")
        with pytest.raises(InvalidSource, match="stale"):
            asked.query(COUNT, epsilon=1)


# --- sfumato.toml ----------------------------------------------------------------------------

CONFIG = """\
dataset = "clinic"
ledger = "ledger.db"
prepared = "layouts"
[budget]
epsilon = "1000000"
[tables.visits]
source = "visits.csv"
unit = {column = "person", max_rows = 2, max_groups = 2}
columns.ward = {type = "category", values = ["A", "B"]}
"""


def test_the_file_names_the_folder(tmp_path: Path) -> None:
    tables = written(tmp_path)
    (tmp_path / "sfumato.toml").write_text(CONFIG, encoding="utf-8")
    with pytest.raises(InvalidSource, match="No prepared layout"):
        load(tmp_path / "sfumato.toml")
    sf.prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    with load(tmp_path / "sfumato.toml") as asked:
        assert any("was read" in str(each) for each in asked.query(COUNT, epsilon=1).form["notes"])
