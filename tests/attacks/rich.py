# SPDX-License-Identifier: Apache-2.0
"""Tables with clips, and persons who try to show through them."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.plan.question import Question
from sfumato.query.auto_clip import learning
from sfumato.sql.clip import Clipping
from sfumato.sql.lower import question_of, tree

Rows = list[dict[str, object]]
Data = Mapping[str, Rows]

INCOME, WEALTH = 10_000, 2**20
# the clip that a question takes as learnt where nothing is asked
LEARNT = (0, 5_000)
WHO = "zz"
_TYPES = {"income": pa.int64(), "debt": pa.float64(), "wealth": pa.int64(), "rent": pa.int64()}
_MONEY = {
    "income": sf.Integer(0, INCOME, clip=1_000),
    "debt": sf.Real(-1_000, 1_000, step=1, clip=(-50, 50)),
    "wealth": sf.Integer(0, WEALTH, clip=sf.AUTO),
    "sex": sf.Category("F", "M"),
    "area": sf.Category("A", "B", "C"),
}
_COLUMNS = {
    "people": ("person", "income", "debt", "wealth", "sex", "area"),
    "flat": ("income", "debt", "wealth", "sex", "area"),
    "homes": ("person", "rent"),
    "areas": ("area", "price"),
}
TWICE = sf.Unit("person", max_rows=2, max_groups=2)
ONCE = sf.Unit("person", max_rows_total=1)

# Each kind of aggregate with a twin: of units with several rows, of rows, through joins and
# sub-queries.
QUESTIONS = [
    "SELECT SUM(income) AS s, AVG(debt) AS d FROM people",
    "SELECT sex, AVG(income) AS m, VARIANCE(income) AS v FROM people GROUP BY sex",
    "SELECT sex, area, SUM(wealth) AS s FROM people GROUP BY ROLLUP(sex, area)",
    "SELECT STDDEV(debt) AS s, SUM(income - 2 * debt) AS t, AVG(wealth) AS w FROM flat",
    "SELECT sex, SUM(p.income + h.rent) AS s FROM people p JOIN homes h ON p.person = h.person GROUP BY sex",
    "SELECT AVG(n) AS m FROM (SELECT person, MAX(income) AS n FROM people GROUP BY person) AS t",
    "SELECT AVG(a.price) AS m, SUM(wealth) AS w FROM people p JOIN areas a ON p.area = a.area",
    "SELECT SUM(CASE WHEN income > 1000 THEN income END) AS rich FROM people",
    "SELECT sex, SUM(income) AS s FROM people GROUP BY sex HAVING AVG(income) > 100 ORDER BY s LIMIT 1",
    "SELECT AVG(debt) AS d FROM people WHERE person IN (SELECT person FROM homes WHERE rent > 5)",
]  # fmt: skip


def row(who: str, income: object, debt: object, wealth: object, place: int) -> dict[str, object]:
    """A row of ``people``, and without its person of ``flat``."""
    return {
        "person": who,
        "income": income,
        "debt": debt,
        "wealth": wealth,
        "sex": "FM"[place % 2],
        "area": "ABC"[place % 3],
    }


def data(*more: dict[str, object], rent: object = None) -> Data:
    """Twenty ordinary persons, and the rows of one more, who may have a home."""
    people = [row(f"p{n:02}", 40 * n, n - 10, 900 * n, n) for n in range(20)]
    homes = [{"person": each["person"], "rent": 7} for each in people]
    if more:
        homes.append({"person": WHO, "rent": rent})
    people += more
    flat = people[:20] + list(more[:1])
    return {
        "people": people,
        "flat": [{name: each[name] for name in _COLUMNS["flat"]} for each in flat],
        "homes": homes,
        "areas": [{"area": "A", "price": 40}, {"area": "B", "price": 9_000}],
    }


def worlds() -> dict[str, Data]:
    """Nobody more, and one person more who goes to the end of everything that is possible."""

    def rich(income: object, debt: object, wealth: object, places: range = range(3)) -> Data:
        more = [row(WHO, income, debt, wealth, place) for place in places]
        return data(*more, rent=INCOME)

    return {
        "": data(),
        "at the possible bound": rich(INCOME, 1_000, WEALTH),
        "beyond it": rich(10**12, -1e300, 10**15),
        "below it": rich(-(10**12), -1_000.0, -5),
        "at the clip": rich(1_000, -50, LEARNT[1]),
        "just above the clip": rich(1_001, 51, LEARNT[1] + 1),
        "thirty rows": rich(INCOME, -1_000, WEALTH, range(30)),
        "missing": rich(None, float("nan"), None, range(2, 3)),
    }


def tables(content: Data) -> dict[str, sf.Table]:
    """The declared tables over these rows."""
    rent = {"rent": sf.Integer(0, INCOME, clip=500)}
    price = {"area": _MONEY["area"], "price": sf.Integer(0, INCOME, clip=100)}

    def arrow(table: str) -> pa.Table:
        return pa.table(
            {
                name: pa.array([each[name] for each in content[table]], _TYPES.get(name))
                for name in _COLUMNS[table]
            }
        )

    return {
        "people": sf.Table(arrow("people"), TWICE, _MONEY),
        "flat": sf.Table(arrow("flat"), columns=_MONEY),
        "homes": sf.Table(arrow("homes"), ONCE, rent),
        "areas": sf.Table(arrow("areas"), columns=price, public=True),
    }


def declared(content: Data | None = None) -> Dataset:
    """The dataset of these tables."""
    return Dataset("rich", tables(content or data()))


def connected(ledger: Path, content: Data) -> sf.Session:
    """A session over these rows."""
    budget = sf.Budget(10**6, "1e-3")
    return sf.connect(tables(content), dataset="rich", budget=budget, ledger=ledger)


def questions() -> dict[str, Question]:
    """Each question with its twins or clipped alone, and those that learn a clip."""
    dataset = declared()
    found = {}
    for values in (sf.Clipped, None, *type(sf.Clipped)):
        for text in QUESTIONS:
            clipping = Clipping(values, lambda column, occasion: LEARNT)
            found[f"{values!r} {text}"] = question_of(tree(text), dataset, clipping=clipping)
    for table in ("people", "flat"):
        found[f"wealth of {table}"] = learning(table, "wealth", dataset)
    return found
