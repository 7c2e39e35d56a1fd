# SPDX-License-Identifier: Apache-2.0
"""Attacks by the values of one unit: nothing that an analyst sees tells whether they are there.

NaN, infinities, NULL, values nobody declared, numbers and dates beyond every range, odd
texts; in columns stored as numbers, and the same stored as text.
"""

from pathlib import Path

import pandas as pd
import pytest

import sfumato as sf
from sfumato.audit.seen import all_seen, differences, previewed
from sfumato.engines import duckdb, sql_tree, value_sql
from sfumato.engines.duckdb import DuckDB
from sfumato.query import add_noise, release
from tests.attacks import shop
from tests.attacks.questions import QUESTIONS, shown

NAN, INF = float("nan"), float("inf")
event = shop.event


def also(**rows: shop.Rows) -> shop.Data:
    """The shop with rows of one more unit, called ``x`` where they do not say it."""
    base = shop.data()
    return {
        name: [*content, *({"user_id": "x", **row} for row in rows.get(name, []))]
        for name, content in base.items()
    }


def user(band: object, joined: object) -> dict[str, object]:
    return {"user_id": "x", "age_band": band, "joined": joined}


NUMBERS = also(
    events=[event("x", "R01", "tea", value, "2024-06-06") for value in (NAN, INF, -INF, -0.0, 5e-324, 1e308)]
    + [event("x", "R02", "9" * 400, 1e308, day) for day in ("9999-12-31", "99999-01-01", "-0044-03-15")],
    users=[user("65+", "9999-12-31")],
    orders=[
        {"price": price, "quantity": "9" * 400}
        for price in ("9" * 400, "1e400", "-1e400", "1e-400", "inf", "NaN", "ten", "0x10", "1_000", "--3", "\uff11", " 5 ", "1e")
    ],
)  # fmt: skip
MISSING = also(
    events=[
        *(event("x", None, None, None, None), event(None, "R01", "tea", 1.0, "2024-06-06"), event("x", "R99", "", 1.0, "x")),
        *(event("x", region, "", 1.0, "2024-02-30") for region in ("", "r01", " R01", "N")),
        *(event("x", "R03", "tea", 1.0, day) for day in ("0000-01-01", "12/31/2024", "2024-6-6", "")),
    ],
    users=[user(None, None), {**user("65+", "2022-02-02"), "user_id": None}, user("18 - 24", "yesterday"), user("", "2022-1-1")],
    orders=[{"price": None, "quantity": None}, {"user_id": None, "price": "5", "quantity": "5"}],
    events_unbounded=[{"amount": None, "product": None}],
)  # fmt: skip
ODD = (
    "e\u0301",
    "é",
    "\u202eaet",
    "\U0001f375",
    "a\x00b",
    "'; DROP TABLE events; --",
    "%",
    "\\",
    "\n",
    "x" * 10_000,
)
TEXTS = also(
    events=[event("x", "R03", product, 1.0, "2024-06-06") for product in ODD],
    users=[user(band, "2022-02-02") for band in ODD],
    orders=[{"price": f"5{text}", "quantity": text} for text in ODD],
    events_unbounded=[{"amount": 1.0, "product": text} for text in ODD],
)
NEIGHBOURS = {"numbers": NUMBERS, "missing": MISSING, "texts": TEXTS}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_no_value_of_one_unit_shows_in_anything_but_the_numbers(base, tmp_path, name):
    assert differences(base, shown(tmp_path, NEIGHBOURS[name])) == []


def test_a_preview_is_the_same_on_any_data(tmp_path):
    shows = []
    for place, content in enumerate((shop.data(), MISSING)):
        with shop.connected(tmp_path, content, name=str(place)) as session:
            shows.append(previewed(session, QUESTIONS))
    assert shows[0] == shows[1]


# --- each check notices what it is for -----------------------------------------------------------

# no one of the twelve paid as much
COUNTED = [
    "SELECT region, COUNT(*) FROM events WHERE amount > 495 GROUP BY region",
    "SELECT SUM(price) FROM orders",
]


def different(folder: Path, content: shop.Data) -> list[str]:
    """What shows of the difference to the shop, in two questions."""
    shows = []
    for name, each in (("one", shop.data()), ("other", content)):
        with shop.connected(folder, each, name=name) as session:
            shows.append(all_seen(session, COUNTED))
    return differences(*shows)


def test_a_cast_that_fails_on_a_value_is_seen(tmp_path, monkeypatch):
    assert different(tmp_path, NUMBERS) == []
    monkeypatch.setattr(
        value_sql,
        "_guard_cast",
        lambda cast, raw, family, pattern: sql_tree.Cast(cast.value, cast.type),
    )
    (tmp_path / "again").mkdir()
    assert different(tmp_path / "again", NUMBERS) == ["SELECT SUM(price) FROM orders"]


def test_groups_that_come_from_the_data_are_seen(tmp_path, monkeypatch):
    occurring: list[tuple[object, ...]] = []
    honest = DuckDB._run

    def run(engine, plan, emitted, patience):
        exact = honest(engine, plan, emitted, patience)
        occurring[:] = list(exact[0])
        return exact

    monkeypatch.setattr(DuckDB, "_run", run)
    monkeypatch.setattr(release, "cells_of", lambda planned: ())
    monkeypatch.setattr(add_noise, "every_group", lambda keys: list(occurring) if keys else [()])
    assert different(tmp_path, NUMBERS) == COUNTED[:1]


def test_a_log_of_how_many_rows_were_read_is_seen(tmp_path, monkeypatch):
    honest = duckdb._rows

    def rows(connection, text):
        count = connection.execute("SELECT count(*) FROM source_orders").fetchone()
        duckdb._OWNER.info("%s rows", count)
        return honest(connection, text)

    monkeypatch.setattr(duckdb, "_rows", rows)
    assert different(tmp_path, NUMBERS) == COUNTED


def test_a_failure_where_nothing_was_found_is_seen(tmp_path, monkeypatch):
    honest = DuckDB._run

    def run(engine, plan, emitted, patience):
        exact = honest(engine, plan, emitted, patience)
        if not any(exact):
            raise sf.SfumatoError("nothing found")
        return exact

    monkeypatch.setattr(DuckDB, "_run", run)
    assert different(tmp_path, NUMBERS) == COUNTED[:1]


def frame(ages: list[object]) -> pd.DataFrame:
    """Three people; pandas chooses the physical type by what it sees."""
    return pd.DataFrame({"age": ages, "sex": ["F", "M", "F"]})


@pytest.mark.parametrize(
    "ages", [[30, 40, None], ["30", "40", "x"], [30.0, 40.0, 1e300], [True, False, None]]
)
def test_the_type_in_which_values_are_stored_does_not_show(tmp_path, ages, monkeypatch):
    questions = [
        "SELECT sex, COUNT(age), AVG(age) FROM t GROUP BY sex",
        "SELECT MEDIAN(age) FROM t WHERE age > 30",
    ]

    def looks(values: list[object], name: str) -> list[object]:
        columns = {"age": sf.Integer(0, 120), "sex": sf.Category("F", "M")}
        tables = {"t": sf.Table(frame(values), columns=columns)}
        with sf.connect(
            tables, dataset="d", budget=sf.Budget(100), ledger=tmp_path / f"{name}.db"
        ) as session:
            return [previewed(session, questions), all_seen(session, questions)]

    assert looks([30, 40, 50], "one") == looks(ages, "other")
    if frame(ages).dtypes["age"] != frame([30, 40, 50]).dtypes["age"]:
        monkeypatch.setattr(
            DuckDB,
            "_declared",
            property(lambda engine: engine._sources, lambda *_: None),
            raising=False,
        )
        assert looks([30, 40, 50], "third")[0] != looks(ages, "fourth")[0]
