# SPDX-License-Identifier: Apache-2.0
"""The declarations of several tables of one unit, and how their rows are read."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration, UnknownName, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.synthetic.relational import family_of, rows_of
from tests.synthetic.clinics import session

THREE = ["patients", "visits", "drugs"]


def test_a_family_follows_from_declarations(tmp_path):
    with session(tmp_path) as opened:
        family = family_of(opened.dataset, THREE, bins={"visits.cost": 4})
        parent, visits, drugs = (family.widened(table) for table in range(3))
        assert family.key == "pid" and family.ids == ("vid", "")
        numbers = ["number of visits", "number of drugs"]
        assert [one.name for one in parent] == ["age", "sex", *numbers]
        assert [one.name for one in visits] == [
            *("day", "ward", "cost"),
            *("patients.age", "patients.sex", *numbers),
        ]
        assert [one.cells for one in visits[:3]] == [66 - 4, 4, 5]
        assert (family.children[1].above, family.children[1].link) == ("visits", "vid")
        assert len(drugs) == 2 + len(parent)


def test_the_column_that_orders_is_named_or_the_first_date():
    columns = {"on": sf.Date("2020-01-01", "2020-01-31"), "n": sf.Integer(0, 3)}
    rows = pa.table({"id": [1]})
    tables = {
        "a": sf.Table(rows, unit=sf.Unit("id", max_rows=1), columns={"x": sf.Boolean()}),
        "b": sf.Table(rows, unit=sf.Unit("id", max_rows_total=3), columns=columns),
    }
    dataset = Dataset("d", tables)
    orders = []
    for asked in (None, {"b": "n"}, {"b": ""}):
        (child,) = family_of(dataset, ["a", "b"], order=asked).children
        orders.append((child.order, len(family_of(dataset, ["a", "b"], order=asked).widened(1))))
    assert orders == [("on", 7), ("n", 7), ("", 4)]
    with pytest.raises(UnknownName):
        family_of(dataset, ["a", "b"], order={"b": "x"})


def test_rows_of_several_tables_have_the_columns_of_one_each(tmp_path):
    with session(tmp_path) as opened:
        plan = rows_of(opened.dataset, family_of(opened.dataset, THREE))
        assert [value.name for value in plan.rows.values] == [
            *("table", "patients.age", "patients.sex"),
            *("visits.day", "visits.ward", "visits.cost", "drugs.drug", "drugs.works"),
        ]
        assert plan.unit == "pid"


@pytest.mark.parametrize(
    ("tables", "more", "error"),
    [
        (["visits", "patients"], {}, WrongUse),
        (["patients", "patients"], {}, WrongUse),
        (["patients", "nobody"], {}, UnknownName),
        (["patients", "places"], {}, WrongUse),
        (["patients", "endless"], {}, MissingDeclaration),
        (["patients", "long"], {}, WrongUse),
        (["patients", "visits"], {"columns": ["age"]}, UnknownName),
        (["patients", "visits"], {"columns": ["patients.age", "visits.id"]}, WrongUse),
        (["patients", "visits"], {"bins": {"visits.nothing": 3}}, UnknownName),
    ],
)
def test_what_is_no_family_is_refused(tables, more, error):
    rows, whole = pa.table({"id": [1]}), {"age": sf.Integer(0, 9)}
    dataset = Dataset(
        "d",
        {
            "patients": sf.Table(rows, unit=sf.Unit("id", max_rows_total=1), columns=whole),
            "visits": sf.Table(
                rows,
                unit=sf.Unit("id", max_rows=2, max_groups=2),
                columns={**whole, "id": sf.Integer(0, 9)},
            ),
            "places": sf.Table(rows, columns=whole),
            "endless": sf.Table(rows, unit=sf.Unit("id", max_rows=2), columns=whole),
            "long": sf.Table(rows, unit=sf.Unit("id", max_rows_total=999), columns=whole),
        },
    )
    with pytest.raises(error):
        family_of(dataset, tables, **more)
