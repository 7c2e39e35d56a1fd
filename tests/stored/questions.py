# SPDX-License-Identifier: Apache-2.0
"""The questions whose stored forms are pinned, about made-up rows.

Their answers are in files, so nothing here ever changes: not a declaration, a cost, an option, nor
the words of a statement. That is why it shares nothing with ``tests/contracts``, which may change.
A new question goes into a dataset of its own, with files of its own. How a cost is split is stated,
where floats would find it.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from torch import nn

import sfumato as sf
from sfumato import learning as ln
from sfumato import synopsis, telemetry
from sfumato import synthetic as sy
from sfumato.learning import torch as lt
from sfumato.learning.torch import fingerprint, network, network_model, whitening
from sfumato.query.task import Task
from sfumato.telemetry.charge import DeviceLife
from sfumato.telemetry.oracles.category import category

Question = Callable[..., Any]
ALL = range(60)
FOLDER = Path(__file__).parent / "2026_11"
MODELS = FOLDER / "models"
LEDGER = "ledger.sqlite"
INTERRUPTED = "additive, gone on with"

USER = sf.Unit("user_id", max_rows=10, max_groups=5)
STAY = sf.Unit("stay", via="stays.user_id", max_rows=4, max_groups=3)
SHOP: dict[str, sf.Table] = {
    "events": sf.Table(
        pa.table(
            {
                "user_id": [f"u{row % 20}" for row in ALL],
                "region": ["R01", "R02", "R03", "N"] * 15,
                "product": [f"p{row % 3}" for row in ALL],
                "amount": [float(7 * row % 500) for row in ALL],
                "day": [f"2024-{1 + row % 12:02}-15" for row in ALL],
            }
        ),
        unit=USER,
        columns={
            "region": sf.Category("R01", "R02", "R03", missing="N"),
            "product": sf.Text(),
            "amount": sf.Real(0, 500),
            "day": sf.Date("2024-01-01", "2024-12-31"),
        },
    ),
    "users": sf.Table(
        pa.table(
            {
                "user_id": [f"u{row}" for row in range(20)],
                "age_band": ["18-24", "25-34", "35-64", "65+"] * 5,
                "joined": ["01/02/2020", "31/12/2024"] * 10,
                "is_member": ["yes", "no", "?", "yes"] * 5,
            }
        ),
        unit=sf.Unit("user_id", max_rows=1),
        columns={
            "age_band": sf.Category("18-24", "25-34", "35-64", "65+"),
            "joined": sf.Date("2020-01-01", "2024-12-31", format="%d/%m/%Y"),
            "is_member": sf.Boolean(true="yes", false="no", missing="?"),
        },
    ),
    "products": sf.Table(
        pa.table({"product": ["p0", "p1", "p2"], "category": ["food", "toys", "books"]}),
        public=True,
        columns={"product": sf.Text(), "category": sf.Category("food", "toys", "books")},
    ),
    "stays": sf.Table(
        pa.table(
            {
                "user_id": [f"u{row % 20}" for row in ALL],
                "stay": list(ALL),
                "ward": [str(1 + row % 2) for row in ALL],
                "nights": [str(row % 9) for row in ALL],
            }
        ),
        unit=USER,
        columns={
            "ward": sf.Category({"1": "eye", "2": "heart"}),
            "nights": sf.Integer(0, 30, clip=14, missing="?"),
        },
    ),
    "notes": sf.Table(
        pa.table(
            {
                "stay": list(ALL),
                "at": [f"2024-{1 + row % 12:02}-15 12:30:00" for row in ALL],
                "pages": [row % 40 for row in ALL],
            }
        ),
        unit=STAY,
        columns={
            "at": sf.Timestamp("2024-01-01", "2024-12-31", zone="Europe/Paris", step=60),
            "pages": sf.Integer(0, 99),
        },
    ),
}

ROOM: dict[str, sf.Table] = {
    "t": sf.Table(
        pa.table(
            {
                "u": [f"u{row % 40}" for row in ALL],
                "a": [row * 2.5 for row in ALL],
                "n": [row * 100 for row in ALL],
                "b": [row % 10 for row in ALL],
                "s": ["F", "M"] * 30,
                "job": [f"job {row % 3}" for row in ALL],
                "day": [f"2026-11-{1 + row % 30:02}" for row in ALL],
                "v": [[row % 3, row % 2] for row in ALL],
                "y": ["no", "yes", "yes"] * 20,
            }
        ),
        unit=sf.Unit("u", max_rows_total=2),
        columns={
            "a": sf.Real(0, 1000, step="0.001"),
            "n": sf.Integer(0, 10**7),
            "b": sf.Integer(0, 9),
            "s": sf.Category("F", "M"),
            "job": sf.Text(),
            "day": sf.Date("2026-11-01", "2026-11-30"),
            "v": sf.Array(2, 0, 9),
            "y": sf.Category("no", "yes"),
        },
    ),
}

CLINIC: dict[str, sf.Table] = {
    "patients": sf.Table(
        pa.table(
            {
                "id": [f"u{row}" for row in ALL],
                "age": [row % 90 for row in ALL],
                "sex": ["F", "M"] * 30,
                "home": [f"town {row % 2}" for row in ALL],
            }
        ),
        unit=sf.Unit("id", max_rows_total=1),
        columns={"age": sf.Integer(0, 99), "sex": sf.Category("F", "M"), "home": sf.Text()},
    ),
    "visits": sf.Table(
        pa.table(
            {
                "id": [f"u{row % 40}" for row in ALL],
                "day": [row % 300 for row in ALL],
                "ward": ["eye", "heart", "skin"] * 20,
            }
        ),
        unit=sf.Unit("id", max_rows_total=3),
        columns={"day": sf.Integer(0, 364), "ward": sf.Category("eye", "heart", "skin")},
    ),
}
AUTO: dict[str, sf.Table] = {
    "t": sf.Table(
        ROOM["t"].source.select(["u", "n", "b"]),
        unit=sf.Unit("u", max_rows=sf.AUTO, max_groups=2),
        columns={"n": sf.Integer(0, 100, clip=sf.AUTO), "b": sf.Integer(0, 9)},
    ),
}


def _sql(statement: str, **cost: Any) -> Question:
    """A question in SQL, of a pure epsilon if no cost is stated."""
    return lambda here: here.query(statement, **(cost or {"epsilon": 1}))


def _fit(recipe: Any, columns: str, label: str | None = "y", **cost: Any) -> Question:
    """A fit of a recipe to columns of the one table."""
    data = f"SELECT {columns} FROM t"
    return lambda here, **how: ln.fit(here, recipe, data, label=label, **cost, **how)


def _synthetic(*tables: str, texts: str = "", **options: Any) -> Question:
    """A synthetic fit; ``texts`` is the text column that it opens."""
    if texts:
        options["texts"] = {texts: "(other)"}
    chosen = sy.Options(**options)
    return lambda here: sy.fit(here, tables, epsilon=1, delta="1e-9", options=chosen)


def _asked(task: Task) -> Question:
    """A task that is asked as it is."""
    return lambda here: here.ask(task)


CROSS = nn.CrossEntropyLoss(reduction="none")


def _linear(inputs: int) -> nn.Module:
    """A module with two outputs, whose weights are stated."""
    module = nn.Linear(inputs, 2)
    nn.init.constant_(module.weight, 0.25)
    nn.init.zeros_(module.bias)
    return module


def _network(optimizer: Any, columns: str = "b, s, y", inputs: int = 2, **options: Any) -> Question:
    """A fit of a small network."""

    def ask(here: sf.Session) -> Any:
        how = {"steps": 4, "size": 40, "checkpoints": 2} | options
        recipe = lt.Network(_linear(inputs), CROSS, optimizer, **how)
        return ln.fit(here, recipe, f"SELECT {columns} FROM t", label="y", epsilon=1, delta="1e-9")

    return ask


def _stream(where: str = "", **options: Any) -> Question:
    """A stream with a tick, or with as many as are stated."""
    how = {"epsilon": 1} | options

    def ask(here: sf.Session, days: Sequence[str] = ("2026-11-15",)) -> Any:
        opened = synopsis.stream(here, "t", time="day", where=where, **how)
        with opened:
            for day in days[len(opened.ends) :]:
                opened.advance(day)
        return opened

    return ask


def _score(model: str, columns: str) -> Question:
    """A score of a stored model."""
    return lambda here: ln.score(
        here, ln.load(MODELS / f"{model}.json"), f"SELECT {columns} FROM t", label="y", epsilon=1
    )


SPINE = synopsis.Spine(
    "whole > half > b",
    pa.table(
        {
            "whole": ["all"] * 10,
            "half": [f"h{number // 5}" for number in range(10)],
            "b": [str(number) for number in range(10)],
        }
    ),
)
_HOW: dict[str, Any] = {"epsilon": 1, "delta": "1e-9"}
OPTIMIZERS = {"sgd": lt.SGD(0.5, 0.9), "adam": lt.Adam(0.01)}

# The statements, by name.
STATEMENTS: Mapping[str, Question] = {
    "rows": _sql("SELECT COUNT(*) FROM events"),
    "units": _sql("SELECT COUNT(DISTINCT user_id) FROM events"),
    "four aggregates": _sql(
        "SELECT SUM(amount), AVG(amount), COUNT(*), COUNT(amount), VAR_SAMP(amount) FROM events",
        rho="0.1",
    ),
    "mean by region": _sql(
        "SELECT region, AVG(amount) AS m FROM events GROUP BY region HAVING COUNT(*) > 10"
    ),
    "open groups": _sql(
        "SELECT product, COUNT(*) AS n FROM events GROUP BY product ORDER BY n DESC LIMIT 2 "
        "OFFSET 1",
        **_HOW,
    ),
    "units by day": _sql("SELECT day, COUNT(DISTINCT user_id) FROM events GROUP BY day"),
    "months": _sql("SELECT DATE_TRUNC('month', day) AS m, SUM(amount) FROM events GROUP BY 1"),
    "parts of dates": _sql(
        "SELECT COUNT(*) FROM events WHERE EXTRACT(year FROM day) = 2024 AND EXTRACT(quarter FROM "
        "day) < 3 AND EXTRACT(month FROM day) <= 6 AND EXTRACT(day FROM day) > 2 AND "
        "EXTRACT(week FROM day) >= 2 AND EXTRACT(doy FROM day) <> 9 AND EXTRACT(dow FROM day) > 1"
    ),
    "cuts of dates": _sql(
        "SELECT COUNT(*) FROM events WHERE DATE_TRUNC('year', day) = DATE '2024-01-01' AND "
        "DATE_TRUNC('quarter', day) > DATE '2023-01-01' AND DATE_TRUNC('week', day) < "
        "DATE '2024-12-01'"
    ),
    "median": _sql("SELECT MEDIAN(pages) FROM notes"),
    "quantiles": _sql(
        "SELECT region, QUANTILE_CONT(amount, 0.5), QUANTILE_CONT(amount, 0.9) FROM events "
        "GROUP BY region"
    ),
    "distinct values": _sql("SELECT COUNT(DISTINCT product) FROM events"),
    "case": _sql(
        "SELECT SUM(CASE WHEN amount > 50 OR NOT region = 'R01' THEN 1 ELSE 0 END) FROM events"
    ),
    "least and greatest": _sql(
        "SELECT SUM(LEAST(amount, 100)), SUM(GREATEST(amount, 10)) FROM events"
    ),
    "tests": _sql(
        "SELECT COUNT(*) FROM events WHERE day BETWEEN DATE '2024-02-01' AND DATE '2024-06-30' "
        "AND region IN ('R01', 'R02') AND product LIKE 'p%' AND amount IS NOT NULL"
    ),
    "coalesce": _sql("SELECT AVG(COALESCE(nights, 3)), SUM(nights) FROM stays"),
    "arithmetic": _sql("SELECT SUM(pages * 2 - 1 + pages // 3), AVG(pages % 7) FROM notes"),
    "quotient": _sql("SELECT SUM(pages / 4) FROM notes WHERE pages / (pages + 1) > 0.5"),
    "output": _sql(
        "SELECT region, CASE WHEN COUNT(*) > 5 THEN SUM(amount) / COUNT(*) ELSE 0 END AS mean, "
        "COALESCE(AVG(amount), 0) AS a, GREATEST(COUNT(*), 0) AS n, FLOOR(SUM(amount) / 10) AS f "
        "FROM events GROUP BY region HAVING region IN ('R01', 'R02', 'R03') AND (COUNT(*) > 1 OR "
        "NOT SUM(amount) IS NULL) ORDER BY region DESC NULLS FIRST LIMIT 3",
        rho="0.1",
    ),
    "spread": _sql("SELECT STDDEV_SAMP(amount), VAR_POP(amount) FROM events"),
    "two tables of a unit": _sql(
        "SELECT u.age_band, AVG(e.amount) FROM events e JOIN users u ON e.user_id = u.user_id "
        "GROUP BY u.age_band"
    ),
    "outer join of units": _sql(
        "SELECT COUNT(u.age_band) FROM events e LEFT JOIN users u ON e.user_id = u.user_id"
    ),
    "public table": _sql(
        "SELECT p.category, COUNT(*) FROM events e JOIN products p ON e.product = p.product "
        "GROUP BY p.category"
    ),
    "table by a key": _sql(
        "SELECT s.ward, SUM(n.pages) FROM notes n JOIN stays s ON n.stay = s.stay GROUP BY s.ward"
    ),
    "totals of units": _sql(
        "WITH per_user AS (SELECT user_id, SUM(amount) AS total, MIN(amount) AS low, MAX(amount) "
        "AS high, AVG(amount) AS mean, COUNT(amount) AS n FROM events GROUP BY user_id) SELECT "
        "AVG(total), SUM(low), SUM(high), SUM(mean), SUM(n) FROM per_user",
        rho="0.1",
    ),
    "units of many rows": _sql(
        "SELECT COUNT(*) FROM (SELECT user_id FROM events WHERE amount > 100 GROUP BY user_id "
        "HAVING COUNT(*) >= 3)"
    ),
    "first row": _sql(
        "WITH x AS (SELECT user_id, day, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY "
        "day, product, amount) AS rn FROM events) SELECT AVG(amount) FROM x WHERE rn = 1"
    ),
    "units of another table": _sql(
        "SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = "
        "e.user_id AND u.is_member)"
    ),
    "units of no other table": _sql(
        "SELECT COUNT(*) FROM events WHERE user_id NOT IN (SELECT user_id FROM users WHERE "
        "age_band = '18-24')"
    ),
    "union": _sql(
        "SELECT COUNT(*), SUM(x) FROM (SELECT user_id, amount AS x FROM events UNION ALL SELECT "
        "user_id, nights AS x FROM stays)"
    ),
    "rollup": _sql(
        "SELECT region, COUNT(*) AS n, GROUPING(region) AS g FROM events GROUP BY ROLLUP(region)"
    ),
    "hours": _sql(
        "SELECT EXTRACT(hour FROM at) AS h, COUNT(*) FROM notes WHERE EXTRACT(minute FROM at) < 45 "
        "GROUP BY h"
    ),
    "cut timestamps": _sql(
        "SELECT DATE_TRUNC('month', at) AS m, COUNT(DISTINCT user_id) FROM notes n JOIN stays s ON "
        "n.stay = s.stay GROUP BY m"
    ),
    "buckets": _sql("SELECT WIDTH_BUCKET(amount, 0, 200, 4) AS b, COUNT(*) FROM events GROUP BY b"),
    "dates with a format": _sql("SELECT COUNT(*) FROM users WHERE joined > DATE '2021-01-01'"),
}

# The tasks and series, by name, over one table.
TASKS: Mapping[str, Question] = {
    "frame": lambda here: here.table("t").where(sf.col("b") > 3).agg(n=sf.count()).query(epsilon=1),
    "marginals": lambda here: here.marginals("t", [("s", "y"), ("b",)], rho="0.01"),
    "marginals in L1": lambda here: here.marginals("t", [("s", "y")], epsilon=1),
    "synopsis of a column": lambda here: synopsis.measure(
        here, "t", synopsis.ranges("b"), epsilon=1
    ),
    "synopsis of two columns": lambda here: synopsis.measure(
        here,
        "t",
        synopsis.ranges("b") * synopsis.cells("s"),
        rho="0.01",
        strategy="tables alone",
    ),
    "census": lambda here: synopsis.census(
        here,
        "t",
        SPINE,
        tables={"whole": [["s"], []], "half": ["s"]},
        rho="0.01",
        split="even by table",
    ),
    "stream": _stream(by=["s"], horizon=4),
    "stream of some rows": _stream(where="b > 3", horizon=8, participations=2, separation=2),
    "stream with square roots": _stream(by=["s"], horizon=30, rho="0.01", epsilon=None),
    "synthetic": _synthetic("t", columns=["b", "s", "y"], rounds=1),
    "synthetic with bins": _synthetic(
        "t", columns=["a", "n", "s"], bins={"a": [10, 100], "n": sy.Quantiles(4)}, rounds=1
    ),
    "synthetic with a text": _synthetic("t", columns=["job", "s"], texts="job", rounds=1),
    "additive": _fit(
        ln.Additive(edges={"a": [10, 100]}, bins=4, steps=2, checkpoints=2),
        "a, b, s, y",
        rho="0.01",
    ),
    # it was interrupted after its first checkpoint
    INTERRUPTED: _fit(ln.Additive(bins=4, steps=6, checkpoints=3), "b, s, y", rho="0.02"),
    "additive, sampled": _fit(
        ln.Additive(bins=4, steps=4, order=ln.Poisson("0.1"), checkpoints=2), "b, s, y", **_HOW
    ),
    "logistic": _fit(ln.LogisticRegression(steps=2, checkpoints=1), "a, b, s, y", rho="0.01"),
    "linear": _fit(ln.LogisticRegression(steps=2, checkpoints=1), "b, s, a", "a", rho="0.01"),
    "ridge": _fit(ln.Ridge(), "n, b, s, a", "a", rho="0.01"),
    "naive bayes": _fit(ln.NaiveBayes(bins=4), "a, b, s, y", epsilon=1),
    "decision tree": _fit(ln.DecisionTree(depth=2), "b, s, y", epsilon=1),
    "forest": _fit(ln.Forest(trees=2, depth=2), "b, s, y", rho="0.01"),
    "clusters": _fit(ln.KMeans(2), "a, b", None, rho="0.01"),
    "clusters in L1": _fit(ln.KMeans(2), "a, b", None, epsilon=1),
    "components": _fit(ln.PCA(1), "a, n, b", None, rho="0.01"),
    "components of arrays": _fit(ln.PCA(1), "v", None, rho="0.01"),
    "whitening": lambda here: ln.fit(
        here, lt.Whitening(_linear(2), kept=1), "SELECT b, s FROM t", epsilon=1, delta="1e-9"
    ),
    "tune": lambda here: ln.tune(
        here,
        [ln.NaiveBayes(bins=2), ln.DecisionTree(depth=1)],
        "SELECT b, s, y FROM t",
        label="y",
        runs=2,
        epsilon=1,
    ),
    "network": _network(OPTIMIZERS["sgd"]),
    "network, Adam": _network(OPTIMIZERS["adam"], order=ln.Poisson("0.1"), clip=2),
    "network of arrays": _network(OPTIMIZERS["sgd"], "v, y", 2),
    "network, clip of a quantile": _network(
        OPTIMIZERS["sgd"], order=ln.Poisson("0.1"), clip=lt.AdaptiveClip()
    ),
    "network in cyclic order": _network(
        OPTIMIZERS["sgd"], order=ln.Cyclic(2), noise=ln.MatrixNoise(2)
    ),
}

RELATIONS: Mapping[str, Question] = {
    "synthetic of two tables": _synthetic(
        "patients",
        "visits",
        columns=["patients.age", "patients.sex", "visits.day", "visits.ward"],
        order={"visits": "day"},
        bins={"visits.day": 4},
        rounds=1,
    ),
    "synthetic of two tables with a text": _synthetic(
        "patients",
        "visits",
        columns=["patients.sex", "patients.home", "visits.ward"],
        order={"visits": ""},
        rounds=0,
        texts="patients.home",
    ),
}

# What is asked about stored models, by name.
SCORES: Mapping[str, Question] = {
    "score": _score("naive_bayes", "a, b, s, y"),
    "score of a tree": _score("decision_tree", "b, s, y"),
    "score of trees": _score("forest", "b, s, y"),
    "score of a network": lambda here: ln.score(
        here,
        lt.load(MODELS / "network.sfm", nn.Linear(2, 2)),
        "SELECT b, s, y FROM t",
        label="y",
        epsilon=1,
    ),
    "score within": lambda here: ln.score_within(
        here,
        ln.load(MODELS / "ridge.json"),
        "SELECT n, b, s, a FROM t",
        label="a",
        within=5,
        epsilon=1,
    ),
    "choose": lambda here: ln.choose(
        here,
        [ln.load(MODELS / f"{name}.json") for name in ("decision_tree", "forest")],
        "SELECT b, s, y FROM t",
        label="y",
        epsilon=1,
    ),
}

# Where neighbours replace a unit.
REPLACED: Mapping[str, Question] = {
    "life of a device": _asked(
        DeviceLife(
            telemetry.report_task(
                "t", "?", ["a", "b"], oracle=category(3, 1), start=0, periods=4, memory=2
            )
        )
    ),
    "rows, a unit replaced": _sql("SELECT s, COUNT(*), SUM(b) FROM t GROUP BY s"),
    "logistic of a sample of fixed size": _fit(
        ln.LogisticRegression(steps=2, checkpoints=1, order=ln.Fixed(10, 60)),
        "b, s, y",
        rho="0.01",
    ),
}

# Where limits and clips are learnt, each by a question of its own.
LEARNT: Mapping[str, Question] = {
    "learnt limit": _sql("SELECT b, COUNT(*) FROM t GROUP BY b"),
    "learnt clip": _sql("SELECT SUM(n) FROM t"),
}

QUESTIONS: Mapping[str, Mapping[str, Question]] = {
    "shop": STATEMENTS,
    "room": {**TASKS, **SCORES},
    "clinic": RELATIONS,
    "phones": REPLACED,
    "auto": LEARNT,
}
_TABLES = {"shop": SHOP, "room": ROOM, "clinic": CLINIC, "phones": ROOM, "auto": AUTO}


def connect(dataset: str, folder: Path) -> sf.Session:
    """A session over one of the datasets, with the ledger of a folder."""
    return sf.connect(
        _TABLES[dataset],
        dataset=dataset,
        budget=sf.Budget(1000, "1e-3"),
        relation=sf.ReplaceOne if dataset == "phones" else sf.AddRemove,
        ledger=folder / LEDGER,
        states=folder / "states",
    )


@contextmanager
def without_torch() -> Iterator[None]:
    """Networks are hashed without what belongs to torch, to Python, or to the caller.

    The version of torch is in the hash, and so are the attributes that it gives its modules. What
    is tried with made-up rows stores nothing, and takes seconds.
    """
    tried = ("rows_apart", "isolated_elsewhere", "forgetful", "released")
    with ExitStack() as block:
        for module in (network, network_model, whitening):
            block.enter_context(patch.object(module, "fingerprint", _hash_of_ours))
        for name in tried:
            block.enter_context(patch.object(network, f"require_{name}", _allowed))
        yield


def _allowed(*given: object) -> None:
    """What is tried passes."""


def _hash_of_ours(*values: object) -> str:
    """The hash of what a fingerprint makes of values of this package and of plain ones."""
    ours = [value for value in values if not isinstance(value, nn.Module)]
    parts = fingerprint.parts_by_name(ours=ours)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
