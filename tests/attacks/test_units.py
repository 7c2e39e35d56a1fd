# SPDX-License-Identifier: Apache-2.0
"""Attacks on whose rows they are: joins that multiply, units in disguise, keys that two units
claim.
"""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.seen import all_seen, differences
from sfumato.engines import relation, sql_tree
from sfumato.errors import Refused
from sfumato.query import release
from sfumato.sql import names
from sfumato.sql.typed import Person
from tests.attacks import shop
from tests.attacks.questions import QUESTIONS, shown
from tests.contracts.people import EXACTLY
from tests.contracts.verbatim import changed
from tests.sql import clinic

event = shop.event
REGIONS = ("R01", "R02", "R03", "N")


def many() -> shop.Rows:
    """A thousand rows of one unit, everywhere at once."""
    return [
        event(
            "x", REGIONS[n % 4], f"own {n % 77}", n % 501, f"2024-{1 + n % 12:02}-{1 + n % 28:02}"
        )
        for n in range(1000)
    ]


def colliding(name: str) -> shop.Data:
    """The shop with a unit whose name reads like another one's, like NULL, or like a piece of the
    sampling order.
    """
    base = shop.data()
    rows = [event(name, region, name, 9.0, "2024-06-06") for region in REGIONS] * 4
    return {
        **base,
        "events": [*base["events"], *rows],
        "users": [*base["users"], {"user_id": name, "age_band": "65+", "joined": "2022-02-02"}],
        "orders": [*base["orders"], {"user_id": name, "price": "9", "quantity": name}],
    }


def thousand() -> shop.Data:
    base = shop.data()
    return {**base, "events": [*base["events"], *many()]}


def removed() -> shop.Data:
    """Without one of the twelve, in any table."""
    gone = shop.USERS[7]
    return {
        name: [row for row in rows if row.get("user_id") != gone]
        for name, rows in shop.data().items()
    }


def nobody() -> shop.Data:
    """Without anybody; what is public stays."""
    return {name: rows if name == "products" else [] for name, rows in shop.data().items()}


DATASETS = {
    "thousand": thousand(),
    "removed": removed(),
    "nobody": nobody(),
    "colliding": colliding("u01|tea"),
    "empty name": colliding(""),
}


def test_every_question_is_seen(base):
    assert list(base) == list(QUESTIONS)


@pytest.mark.parametrize("name", DATASETS)
def test_no_unit_shows_in_anything_but_the_numbers(base, tmp_path, name):
    assert differences(base, shown(tmp_path, DATASETS[name])) == []


def test_a_note_about_who_was_bounded_is_seen(tmp_path, monkeypatch):
    counts = []
    honest = release.bounding
    monkeypatch.setattr(
        release, "bounding", lambda plan: [*honest(plan), f"{max(counts)} rows at most"]
    )
    for content in (shop.data(), thousand()):
        users = [row["user_id"] for row in content["events"]]
        counts.append(max(map(users.count, users)))
    looks = []
    for content, known in ((shop.data(), counts[:1]), (thousand(), counts[:])):
        counts[:] = known
        with shop.connected(tmp_path, content, name=str(len(known))) as session:
            looks.append(all_seen(session, ["SELECT COUNT(*) FROM events"]))
    assert differences(*looks) == ["SELECT COUNT(*) FROM events"]


# --- joins ---------------------------------------------------------------------------------------


def number(folder: Path, content: shop.Data, text: str, name: str = "ledger") -> object:
    """The one number of an answer without noise (a chance below 1e-50 that it is not)."""
    with shop.connected(folder, content, name=name) as session:
        return session.query(text, epsilon=EXACTLY).rows[0][0]


PUBLIC = "SELECT COUNT(*) FROM events e JOIN products p ON e.product = p.product"


def doubled() -> shop.Data:
    base = shop.data()
    return {**base, "products": base["products"] * 5}


def test_a_public_key_that_is_there_five_times_multiplies_nobody(tmp_path, monkeypatch):
    once = number(tmp_path, shop.data(), PUBLIC)
    assert once > 10
    assert number(tmp_path, doubled(), PUBLIC, "again") == once
    monkeypatch.setattr(relation, *changed(relation, "_first_of_key", ") = 1", ") <= 5"))
    assert number(tmp_path, doubled(), PUBLIC, "broken") > once


def test_what_is_bounded_is_what_comes_out_of_the_last_join(tmp_path):
    """One unit with a thousand events counts as ten, whatever it is joined to, in whatever
    order.
    """
    texts = [
        PUBLIC,
        "SELECT COUNT(*) FROM users u JOIN events e ON u.user_id = e.user_id",
        "SELECT COUNT(*) FROM events JOIN users USING (user_id) JOIN products USING (product)",
        "SELECT COUNT(*) FROM (SELECT * FROM events) AS e LEFT JOIN users u ON e.user_id = u.user_id",
        "SELECT COUNT(*) FROM (SELECT user_id, amount FROM events UNION ALL SELECT user_id, price FROM orders) AS b",
    ]
    base = shop.data()
    alone = {name: rows if name == "products" else [] for name, rows in base.items()}
    heavy = {
        **alone,
        "events": [{**row, "product": "tea"} for row in many()],
        "users": [{"user_id": "x", "age_band": "65+", "joined": "2022-02-02"}] * 30,
        "orders": [{"user_id": "x", "price": "1", "quantity": "1"}] * 500,
    }
    found = [number(tmp_path, heavy, text, str(place)) for place, text in enumerate(texts)]
    assert found == [10, 10, 10, 10, 20]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM events a JOIN events b ON a.user_id = b.user_id",
        "SELECT COUNT(*) FROM events a JOIN orders b ON a.user_id = b.user_id",
        "SELECT COUNT(*) FROM events a JOIN events b ON a.product = b.product",
        "SELECT COUNT(*) FROM events a JOIN users b ON a.user_id <> b.user_id",
        "SELECT COUNT(*) FROM events a JOIN users b ON a.user_id = b.user_id OR a.region = 'R01'",
        "SELECT COUNT(*) FROM events a JOIN users b ON UPPER(a.user_id) = UPPER(b.user_id)",
        "SELECT COUNT(*) FROM events a JOIN users b ON a.user_id = b.age_band",
        "SELECT COUNT(*) FROM events a JOIN users b ON a.user_id >= b.user_id",
        "SELECT COUNT(*) FROM events, users",
        "SELECT COUNT(*) FROM events CROSS JOIN products",
        "SELECT COUNT(*) FROM events NATURAL JOIN users",
        "SELECT COUNT(*) FROM events POSITIONAL JOIN users",
        "SELECT COUNT(*) FROM events ASOF JOIN users ON events.day >= users.joined",
        "SELECT COUNT(*) FROM users u FULL JOIN events e ON u.user_id = e.user_id",
        "SELECT COUNT(*) FROM products p LEFT JOIN events e ON p.product = e.product",
        "SELECT COUNT(*) FROM events e RIGHT JOIN products p ON p.product = e.product",
        "SELECT COUNT(*) FROM events e, LATERAL (SELECT * FROM users u WHERE u.user_id = e.user_id) AS l",
        "SELECT COUNT(*) FROM products",
        "SELECT COUNT(*) FROM events WHERE product IN (SELECT product FROM orders)",
        "SELECT COUNT(*) FROM events WHERE product IN (SELECT product FROM events_unbounded)",
        "SELECT COUNT(*) FROM events WHERE EXISTS (SELECT 1 FROM users)",
        "SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id <> e.user_id)",
        "SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM events f WHERE f.user_id = e.user_id AND f.amount > e.amount)",
    ],
)
def test_a_join_that_lets_one_unit_meet_others_or_makes_rows_is_refused(tmp_path, text):
    with shop.connected(tmp_path, shop.data()) as session:
        with pytest.raises(Refused):
            session.query(text, epsilon=1)
        assert session.budget.spent == "0"


def test_an_outer_join_makes_no_row_of_somebody_who_has_none(tmp_path, monkeypatch):
    base = shop.data()
    more = {
        **base,
        "users": [*base["users"], {"user_id": "x", "age_band": "65+", "joined": "2022-02-02"}],
    }
    # a test of both sides, so that the rows are added up after the join
    text = (
        "SELECT COUNT(*) FROM events e LEFT JOIN users u ON e.user_id = u.user_id "
        "WHERE e.amount IS NULL OR e.amount >= 0 OR u.age_band = '65+'"
    )
    assert (
        number(tmp_path, base, text) == number(tmp_path, more, text, "more") == len(base["events"])
    )
    monkeypatch.setattr(relation, "_join_word", lambda *, outer: "FULL JOIN")
    assert number(tmp_path, more, text, "broken") == len(base["events"]) + 1


def test_rows_without_a_unit_are_nobodys(tmp_path, monkeypatch):
    base = shop.data()
    more = {
        **base,
        "events": [
            *base["events"],
            *(event(None, "R01", "tea", 1.0, "2024-06-06") for _ in range(50)),
        ],
    }
    text = "SELECT COUNT(*) FROM events"
    assert number(tmp_path, more, text) == len(base["events"])
    honest = relation.named
    monkeypatch.setattr(
        relation,
        "named",
        lambda columns, source, **_: sql_tree.call(
            "coalesce", honest(columns, source), sql_tree.Constant("nobody")
        ),
    )
    assert number(tmp_path, more, text, "broken") > len(base["events"])


# --- the unit in disguise ------------------------------------------------------------------------

DISGUISED = [
    "SELECT LOWER(user_id) AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT COALESCE(user_id, 'x') AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT user_id || '' AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT CASE WHEN region = 'R01' THEN user_id ELSE 'x' END AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT user_id AS k, amount FROM events) AS t GROUP BY k",
    "SELECT product, COUNT(*) FROM (SELECT user_id AS product, amount FROM events) AS t GROUP BY product",
    "SELECT k, COUNT(*) FROM (SELECT user_id AS k, user_id, amount FROM events) AS t GROUP BY k",
    "SELECT COUNT(DISTINCT user_id || product) FROM events",
    "SELECT MIN(user_id) FROM events",
    "SELECT MAX(LENGTH(user_id)) FROM events",
    "SELECT AVG(user_id) FROM events",
    "SELECT COUNT(*) FROM events WHERE LENGTH(user_id) > 3",
    "SELECT COUNT(*) FROM events WHERE user_id || '' = 'u01'",
    "SELECT COUNT(*) FROM events e JOIN products p ON e.user_id = p.product",
    "SELECT MD5(user_id) AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT HASH(user_id) % 100 AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT region, COUNT(*) FROM events GROUP BY ROLLUP(region, user_id)",
    "SELECT COUNT(*) FROM events GROUP BY CUBE(user_id)",
    "SELECT COUNT(*) FROM events GROUP BY ALL HAVING MAX(user_id) = 'u01'",
    "SELECT COUNT(*), user_id FROM events GROUP BY ALL",
]


def refused(folder: Path, texts: list[str]) -> list[str]:
    """The questions that are refused, whatever is paid."""
    found = []
    with shop.connected(folder, shop.data()) as session:
        for text in texts:
            try:
                session.query(text, epsilon=1, delta="1e-9")
            except sf.SfumatoError as error:
                # a delta where nothing spends one is refused, too, and is no refusal of the
                # question
                found += [text] if "Nothing in this question" not in str(error) else []
    return found


def test_the_unit_is_shown_under_no_name_and_through_no_function(tmp_path):
    assert refused(tmp_path, DISGUISED) == DISGUISED


def test_a_unit_that_is_a_text_like_any_other_is_noticed(tmp_path, monkeypatch):
    honest = names.Scope.column

    def column(scope, node):
        typed = honest(scope, node)
        if isinstance(typed, Person) and typed.reading is not None:
            scope.reads(typed)
            return typed.reading
        return typed

    monkeypatch.setattr(names.Scope, "column", column)
    assert refused(tmp_path, DISGUISED) != DISGUISED


# --- ways to the unit ----------------------------------------------------------------------------

ASKED_OF_THE_CLINIC = [
    "SELECT COUNT(*), COUNT(DISTINCT patient_id), SUM(dose) FROM prescriptions",
    "SELECT drug, COUNT(*) FROM prescriptions GROUP BY drug",
    "SELECT sex, AVG(dose) FROM prescriptions r JOIN patients p ON r.patient_id = p.patient_id GROUP BY sex",
    "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM prescriptions GROUP BY patient_id) AS per",
    "SELECT COUNT(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM prescriptions WHERE drug = 'aspirin')",
    "SELECT ward, MEDIAN(cost), COUNT(DISTINCT visit_id) FROM visits GROUP BY ward",
    "SELECT kind, COUNT(*) FROM prescriptions p JOIN drugs d USING (drug) GROUP BY kind",
    "SELECT ward, COUNT(*) FROM beds GROUP BY ward",
]


def hospital(folder: Path, name: str, **more: list[dict[str, object]]) -> sf.Session:
    """The clinic with more rows."""
    tables = {}
    for table, rows in clinic.TABLES.items():
        declared, every = clinic.DATASET.tables[table], [*rows, *more.get(table, [])]
        columns = {column: pa.array([row[column] for row in every]) for column in rows[0]}
        tables[table] = sf.Table(
            pa.table(columns), unit=declared.unit, columns=declared.columns, public=declared.public
        )
    return sf.connect(
        tables, dataset="clinic", budget=sf.Budget(10**6, "1e-3"), ledger=folder / f"{name}.db"
    )


def visit(number: object, who: object) -> dict[str, object]:
    return {
        "visit_id": number,
        "patient_id": who,
        "ward": "eye",
        "cost": 9.0,
        "day": "2024-02-02",
        "urgent": True,
    }


# a visit that others have too (a smaller name, a larger one), one of nobody, prescriptions of
# visits of nobody
CLAIMS = {
    "visits": [
        visit("v1", "a"),
        visit("v4", "zz"),
        visit("v5", None),
        visit(None, "p1"),
        visit("", "p1"),
        visit("v", "p1"),
    ],
    "prescriptions": [
        {"visit_id": number, "drug": drug, "dose": 3}
        for number, drug in [
            ("v1", "aspirin"),
            ("nowhere", "statin"),
            (None, None),
            ("", ""),
            ("v", "x"),
        ]
    ],
}


def test_keys_that_two_units_claim_show_in_nothing_but_the_numbers(tmp_path):
    looks = []
    for name, more in (("one", {}), ("other", CLAIMS)):
        with hospital(tmp_path, name, **more) as session:
            looks.append(all_seen(session, ASKED_OF_THE_CLINIC))
    assert differences(*looks) == []


def test_a_claimed_key_does_not_multiply_the_rows_that_lead_to_it(tmp_path, monkeypatch):
    """Twelve patients claim one visit: its prescriptions are counted once, as one patient's."""
    text = "SELECT COUNT(*), COUNT(DISTINCT patient_id) FROM prescriptions WHERE dose = 2"
    claimed = {"visits": [visit("v1", f"c{n}") for n in range(12)]}

    def found(name: str) -> list[object]:
        with hospital(tmp_path, name, **claimed) as session:
            return session.query(text, epsilon=EXACTLY).rows[0]

    assert found("honest") == [1, 1]
    honest = relation._units_of_keys

    def every_claim(*asked):
        """The units of a key, each of its rows with one."""
        owners = honest(*asked)
        key, smallest = owners.items
        return replace(owners, items=(key, smallest.name), group=())

    monkeypatch.setattr(relation, "_units_of_keys", every_claim)
    assert found("broken") == [13, 13]
