# SPDX-License-Identifier: Apache-2.0
"""One declared dataset for every statement."""

import pytest

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.sql import understand

UNIT = sf.Unit("user_id", max_rows=10, max_groups=5)
EVENTS = {
    "region": sf.Category("R01", "R02", "R03", missing="N"),
    "product": sf.Text(),
    "amount": sf.Real(0, 200, step="0.5"),
    "age": sf.Integer(10, 20),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "smoker": sf.Boolean(),
}


@pytest.fixture(scope="session")
def shop():
    """Events of users, users, orders of which each row is one person, and public products."""
    return Dataset(
        "shop",
        {
            "events": sf.Table("events.csv", unit=UNIT, columns=EVENTS),
            "users": sf.Table(
                "users.csv",
                unit=sf.Unit("user_id", max_rows=1),
                columns={
                    "age_band": sf.Category("a", "b"),
                    "born": sf.Date("1990-01-01", "1999-12-31"),
                },
            ),
            "orders": sf.Table(
                "orders.csv", columns={"price": sf.Real(0, 10), "quantity": sf.Text()}
            ),
            "events_unbounded": sf.Table(
                "more.csv", unit=sf.Unit("user_id"), columns={"amount": sf.Real(0, 200, step=1)}
            ),
            "products": sf.Table(
                "products.csv",
                public=True,
                columns={
                    "product": sf.Text(),
                    "kind": sf.Category("x", "y"),
                    "size": sf.Integer(0, 9),
                },
            ),
            "days": sf.Table(
                "days.csv",
                unit=sf.Unit(["who", "day"]),
                columns={"day": sf.Date("2024-01-01", "2024-01-31"), "steps": sf.Integer(0, 9)},
            ),
        },
    )


@pytest.fixture(scope="session")
def ask(shop):
    """Understands a text."""
    return lambda text, **more: understand(text, shop, **more)


@pytest.fixture(scope="session")
def where(ask):
    """The test that a WHERE clause becomes."""
    return lambda text: ask(f"SELECT COUNT(*) FROM events WHERE {text}").raw.relation.predicate


@pytest.fixture(scope="session")
def value(ask):
    """The value that an expression of a row becomes."""
    return lambda text: ask(f"SELECT COUNT({text}) FROM events").raw.aggregates[0].value
