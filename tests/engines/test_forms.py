# SPDX-License-Identifier: Apache-2.0
"""The same rows in every physical form: the integers of the reference, or a refusal by name; and
neighbours move them by no more than is claimed.
"""

from contextlib import closing
from functools import cache

import duckdb
import pytest

import sfumato as sf
from sfumato.engines import duckdb_printer, sources, sql_tree
from sfumato.engines.base import Exact
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.layout import whole
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import Prepared, read_manifest
from sfumato.engines.reference import Reference, Sample
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Quantiles
from sfumato.plan.stages import Bounded, Part
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import understand
from tests.contracts.forms import COLUMNS, FORMS, STATEMENTS, UNIT, Form, Place, Rows, made_up_rows

KEY = "key"
DATASET = Dataset("d", {"t": sf.Table("t.csv", columns=COLUMNS, unit=UNIT)})
PLANS = tuple(
    compile_plan(understand(statement, DATASET).raw, DATASET, Norm.L1) for statement in STATEMENTS
)
ROWS = made_up_rows(30, seed=1)


@pytest.fixture
def place_of(tmp_path, request):
    """Makes the place where a form is built, a new one for each call."""
    made = iter(range(99))

    def place(form: Form) -> Place:
        folder = tmp_path / str(next(made))
        folder.mkdir()
        if not form.server:
            return Place(folder)
        server = {"postgres": "database"}.get(form.server, form.server)
        return Place(folder, **{form.server: request.getfixturevalue(server)})

    return place


@pytest.fixture
def by_collation(monkeypatch):
    """Texts are read by a cast, which keeps the collation."""

    def cast(node):
        return ["CAST(", node.value, " AS VARCHAR)"]

    monkeypatch.setitem(duckdb_printer._RULES, sql_tree.CodePoints, cast)


def named(name: str) -> Form:
    (form,) = [form for form in FORMS if form.name == name]
    return form


def integers(form: Form, rows: Rows, place: Place) -> list[Exact]:
    """The integers of each statement over a form of rows."""
    tables = {"t": form.table(rows, place)}
    with closing(DuckDB(tables, limits=sf.Local(threads=1))) as engine:
        return [engine.run(plan, KEY) for plan in PLANS]


@cache
def expected() -> list[Exact]:
    """The integers of each statement over the rows, by the reference."""
    reference = Reference({"t": ROWS})
    return [reference.run(plan, KEY) for plan in PLANS]


def moved(part: Part, one, other) -> int:
    """By how much the integers of a part differ, in L1; of a quantile, the most of one group."""
    zeros = (0,) * part.aggregate.width
    groups = []
    for group in {*one, *other}:
        pair = zip(one.get(group, zeros), other.get(group, zeros), strict=True)
        groups.append(sum(abs(a - b) for a, b in pair))
    return max(groups, default=0) if isinstance(part.aggregate, Quantiles) else sum(groups)


def exceeds(plan: Bounded, one: Exact, other: Exact) -> bool:
    """Whether neighbours differ by more than a plan claims."""
    pairs = zip(plan.parts, one, other, strict=True)
    return any(moved(part, mine, theirs) > part.distance.value for part, mine, theirs in pairs)


READ = [form for form in FORMS if not form.refused]
REFUSED = [form for form in FORMS if form.refused]
# one of each writer and reader, and those whose source compares otherwise
SAMPLE = (
    "Arrow",
    "a folder with keys of Hive",
    "CSV, GB18030",
    "DuckDB, ids NOCASE, apart",
    "DuckDB, values de",
    "SQLite, NOCASE",
    "PostgreSQL, a collation without case",
    "MariaDB, utf8mb4_general_ci",
)


@pytest.mark.parametrize("form", READ, ids=str)
def test_a_form_has_the_integers_of_the_reference(form, place_of):
    assert integers(form, ROWS, place_of(form)) == expected()


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=() if form.name in SAMPLE else pytest.mark.long) for form in READ],
    ids=str,
)
def test_neighbours_in_a_form_differ_by_no_more_than_is_claimed(form, place_of):
    without = [row for row in ROWS if row["who"] != "P0"]
    pair = (integers(form, rows, place_of(form)) for rows in (ROWS, without))
    assert not any(map(exceeds, PLANS, *pair))


@pytest.mark.parametrize("form", REFUSED, ids=str)
def test_a_form_is_refused_by_its_schema_whatever_its_rows_are(form, place_of):
    said = set()
    for rows in (ROWS, ROWS[:1]):
        place = place_of(form)
        with pytest.raises(sf.SfumatoError, match=form.refused) as refusal:
            DuckDB({"t": form.table(rows, place)})
        said.add(str(refusal.value).replace(str(place.folder), ""))
        assert "'t'" in refusal.value.problem
    assert len(said) == 1


# --- layouts and links over columns with a collation -------------------------------------------


def layout_differs(name: str, place_of) -> bool:
    """Whether a prepared layout of a form has other integers than the reference's sample."""
    form = named(name)
    place = place_of(form)
    dataset = Dataset("d", {"t": form.table(ROWS, place)})
    folder = prepare(dataset.tables, dataset="d", folder=place.folder / "layout")
    prepared = Prepared.open(folder, dataset)
    manifest = read_manifest(folder) or {}
    sample = Sample(whole(dataset, "t"), str(manifest["key"]))
    reference = Reference({"t": ROWS}, {"t": sample})
    raws = [understand(statement, dataset).raw for statement in STATEMENTS]
    plans = [compile_plan(raw, dataset, Norm.L1, prepared.kept) for raw in raws]
    assert sum(plan.tracked.kept is not None for plan in plans) >= 3
    with closing(DuckDB(dataset.tables, prepared=prepared)) as engine:
        return any(engine.run(plan, KEY) != reference.run(plan, KEY) for plan in plans)


COLLATED = ["DuckDB, values NOCASE", "DuckDB, ids NOCASE.NOACCENT, apart"]


@pytest.mark.parametrize("name", COLLATED)
def test_a_layout_of_a_form_has_the_integers_of_the_reference(name, place_of):
    assert not layout_differs(name, place_of)


@pytest.mark.usefixtures("by_collation")
@pytest.mark.parametrize("name", COLLATED)
def test_a_layout_by_the_collation_is_noticed(name, place_of):
    assert layout_differs(name, place_of)


def links_differ(folder) -> bool:
    """Whether rows that lead to their unit by keys with a collation belong to others."""
    spelled = ["ab", "AB", "é", "e\u0301", None]
    visits = [{"id": key, "pid": who} for key in spelled for who in spelled[:2]]
    notes = [{"visit": key} for key in (*spelled[1:], "aB", "É")]
    path = folder / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        kind = "VARCHAR COLLATE NOCASE.NOACCENT"
        connection.execute(f"CREATE TABLE visits (id {kind}, pid {kind})")
        connection.execute(f"CREATE TABLE notes (visit {kind})")
        connection.executemany("INSERT INTO visits VALUES ($id, $pid)", visits)
        connection.executemany("INSERT INTO notes VALUES ($visit)", notes)
    link = sf.Unit("visit", via="visits.pid", key="id", max_rows=9, spellings_apart=True)
    units = {"visits": sf.Unit("pid", max_rows=9, spellings_apart=True), "notes": link}
    tables = {name: sf.Table(path, unit=unit, table=name) for name, unit in units.items()}
    dataset = Dataset("clinic", tables)
    statement = "SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS u FROM notes"
    plan = compile_plan(understand(statement, dataset).raw, dataset, Norm.L1)
    reference = Reference({"visits": visits, "notes": notes})
    with closing(DuckDB(tables)) as engine:
        return engine.run(plan, KEY) != reference.run(plan, KEY)


def test_links_with_a_collation_lead_to_the_units_of_the_reference(tmp_path):
    assert not links_differ(tmp_path)


@pytest.mark.usefixtures("by_collation")
def test_links_by_the_collation_are_noticed(tmp_path):
    assert links_differ(tmp_path)


@pytest.mark.parametrize(("left", "right"), [("NOCASE", "C"), ("C", "de"), ("NOCASE", "de")])
def test_columns_of_two_collations_are_joined_by_code_points(tmp_path, left, right):
    rows = {"t": [{"w": "ab"}, {"w": "É"}], "p": [{"w": word} for word in ("aB", "AB", "ab", "e")]}
    path = tmp_path / "both.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, collation in (("t", left), ("p", right)):
            connection.execute(f"CREATE TABLE {name} (w VARCHAR COLLATE {collation})")
            connection.executemany(f"INSERT INTO {name} VALUES ($w)", rows[name])
    tables = {
        name: sf.Table(path, table=name, columns={"w": sf.Text()}, public=name == "p")
        for name in rows
    }
    dataset = Dataset("d", tables)
    raw = understand("SELECT COUNT(*) AS n FROM t JOIN p USING (w)", dataset).raw
    plan = compile_plan(raw, dataset, Norm.L1)
    with closing(DuckDB(tables)) as engine:
        (counts,) = engine.run(plan, KEY)
    assert counts == {(): (1,)}


# --- what the forms notice ---------------------------------------------------------------------


def differs(name: str, place_of) -> bool:
    """Whether a form has other integers than the reference."""
    form = named(name)
    return integers(form, ROWS, place_of(form)) != expected()


@pytest.mark.usefixtures("by_collation")
@pytest.mark.parametrize("name", ["DuckDB, values NOCASE", "DuckDB, ids de, apart"])
def test_a_comparison_by_the_collation_is_noticed(name, place_of):
    assert differs(name, place_of)


def apart_by_one_row(place_of) -> bool:
    """Whether a row that is a unit moves more than is claimed, of a column without case."""
    form = named("DuckDB, values NOCASE")
    dataset = Dataset("d", {"t": sf.Table("t.csv", columns=COLUMNS)})
    plan = compile_plan(understand(STATEMENTS[1], dataset).raw, dataset, Norm.L1)
    row = {"who": "p", "w": "a", "t": "a", "n": 1, "x": 0.5, "d": None, "m": None, "f": True}
    found = []
    for rows in ([row], []):
        table = sf.Table(**form.build(rows, place_of(form)), columns=COLUMNS)
        with closing(DuckDB({"t": table})) as engine:
            found.append(engine.run(plan, KEY))
    return exceeds(plan, *found)


def test_one_row_counts_in_one_spelling(place_of):
    assert not apart_by_one_row(place_of)


@pytest.mark.usefixtures("by_collation")
def test_one_row_that_counts_in_every_spelling_is_noticed(place_of):
    assert apart_by_one_row(place_of)


def test_a_link_that_is_left_out_is_noticed(place_of, monkeypatch):
    monkeypatch.setattr(sources, "_require_no_linked_folder", lambda *_: None)
    assert differs("a folder with a link to a folder", place_of)
    assert differs("a pattern over a link to a folder", place_of)
