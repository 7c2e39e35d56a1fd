# SPDX-License-Identifier: Apache-2.0
"""Seven questions to events of users: privately, plainly, and by bounded SQL that was written by hand.

The hand-written SQL gives bounded integers and no noise: the limits of rows are ours, of the groups
of a user some are kept by a keyed hash, public or not, and amounts are in whole steps of 2^-13.
"""

import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from itertools import count

import duckdb

import sfumato as sf
from benchmarks.events import REGIONS, events
from benchmarks.systems import Call, Make, in_a_row
from benchmarks.systems.questions import FOLDER, tables
from benchmarks.systems.truth import errors
from sfumato.errors import InvalidSource

PACKAGES = ("sfumato", "duckdb")
_FRESH = count(1)
# so many rows of a user and group, so many groups of a user, such an end of the amounts, such steps
_ROWS, _GROUPS, _MOST, _STEPS = 10, 5, 200, 8192

_AGGREGATES = "COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m"
_QUANTILES = "QUANTILE_CONT(amount, 0.5) AS p50, QUANTILE_CONT(amount, 0.9) AS p90"
QUESTIONS = {
    "W1": f"SELECT {_AGGREGATES} FROM events",
    "W2": f"SELECT region, {_AGGREGATES} FROM events GROUP BY region",
    "W3": "SELECT product, COUNT(*) AS n FROM events GROUP BY product",
    "W4": "SELECT day, COUNT(DISTINCT user_id) AS n FROM events GROUP BY day",
    "W5": f"SELECT region, {_QUANTILES} FROM events GROUP BY region",
    "W6": "SELECT u.age_band, AVG(e.amount) AS m FROM events e JOIN users u ON e.user_id = u.user_id GROUP BY u.age_band",
}
# a few rows only, never the same
_FEW = (
    "SELECT COUNT(*) AS n FROM events WHERE region = 'R{region:02}' AND amount > {least}.{number}"
)


def _rows(keys: str) -> str:
    """The rows with their amounts in whole steps from the middle of the range, and the totals of a user and group."""
    clipped = f"CASE WHEN amount < 0 THEN 0.0 WHEN amount > {_MOST} THEN {_MOST}.0 ELSE amount END"
    steps = f"CAST(floor(({clipped} - {_MOST / 2}) * {_STEPS}.0) AS BIGINT)"
    value = f"CASE WHEN amount IS NULL OR isnan(amount) THEN NULL ELSE {steps} END AS v"
    return (
        f"WITH r AS (SELECT user_id{keys}, {value} FROM events), "
        f"u AS (SELECT user_id{keys}, count(*) AS cc, count(v) AS n, coalesce(sum(v), 0) AS sx "
        f"FROM r GROUP BY user_id{keys}), "
        f"w AS (SELECT user_id{keys}, least(cc, {_ROWS}) AS c, least(n, {_ROWS}) AS m, "
        f"CASE WHEN n > {_ROWS} THEN CAST(floor(CAST(sx AS DOUBLE) * {_ROWS}.0 / n) AS BIGINT) ELSE sx END AS s FROM u)"
    )


def _kept(key: str, pairs: str, result: str) -> str:
    """The first groups of each user in the order of a keyed hash."""
    order = f"PARTITION BY user_id ORDER BY hash(user_id, {key}, 'key'), {key}"
    return (
        f"{pairs}, k AS (SELECT *, row_number() OVER ({order}) AS rn FROM w) "
        f"SELECT {key}, count(*) AS users, {result} FROM k WHERE rn <= {_GROUPS} GROUP BY {key}"
    )


def _by_hand() -> Mapping[str, str]:
    counted = f"WITH w AS (SELECT user_id, product, least(count(*), {_ROWS}) AS c FROM events GROUP BY ALL)"
    days = "WITH w AS (SELECT DISTINCT user_id, day FROM events)"
    joined = "SELECT age_band, sum(m) AS m, sum(s) AS s FROM w JOIN users USING (user_id) GROUP BY age_band"
    return {
        "W1": f"{_rows('')} SELECT sum(c) AS n, sum(m) AS m, sum(s) AS s FROM w",
        "W2": _kept("region", _rows(", region"), "sum(c) AS n, sum(m) AS m, sum(s) AS s"),
        "W3": _kept("product", counted, "sum(c) AS n"),
        "W4": _kept("day", days, "count(*) AS n"),
        "W6": f"{_rows('')} {joined}",
    }


BY_HAND = _by_hand()


def limits(rows: int) -> sf.Local:
    """What is spilled only where much more could be asked for than there is."""
    return sf.Local(memory_limit="3500MB") if rows > 10**7 else sf.Local()


@cache
def _session(rows: int) -> sf.Session:
    ledger = tempfile.mkdtemp(prefix="sfumato-bench-")
    declared, budget, name = tables(events(FOLDER, rows)), sf.Budget(10**6, "0.1"), f"bench-{rows}"
    return sf.connect(
        declared, dataset=name, budget=budget, ledger=f"{ledger}/l.db", engine=limits(rows)
    )


@cache
def _prepared(rows: int) -> sf.Session:
    """The same of a prepared layout, which is made where there is none that is current."""
    place, ledger = events(FOLDER, rows), tempfile.mkdtemp(prefix="sfumato-bench-")
    declared, budget, name = tables(place), sf.Budget(10**6, "0.1"), f"bench-{rows}"

    def opened() -> sf.Session:
        kept, file = place / "layouts", f"{ledger}/l.db"
        return sf.connect(
            declared, dataset=name, budget=budget, ledger=file, prepared=kept, engine=limits(rows)
        )

    try:
        return opened()
    except InvalidSource:
        sf.prepare(declared, dataset=name, folder=place / "layouts")
        return opened()


@cache
def _connection(rows: int) -> duckdb.DuckDBPyConnection:
    opened, place, limit = duckdb.connect(), events(FOLDER, rows), limits(rows).memory_limit
    if limit is not None:
        opened.execute(f"SET memory_limit = '{limit}'")
    for name in ("events", "users"):
        opened.execute(f"CREATE VIEW {name} AS FROM read_parquet('{place / name}.parquet')")
    return opened


def price() -> dict[str, object]:
    """An epsilon of 1, and never the same, so that no answer is one that is stored."""
    return {"epsilon": 1 + Fraction(next(_FRESH), 10**9)}


def few() -> str:
    """A count of a few rows, never the same."""
    number = next(_FRESH)
    return _FEW.format(region=number % REGIONS, least=150 + number % 40, number=number)


def _private(name: str, scale: float, n: int, of: Callable[[int], sf.Session] = _session) -> Call:
    session, pays = of(n), {"delta": Fraction(1, 10**6)} if name == "W3" else {}
    return lambda: session.query(QUESTIONS[name], **price(), **pays)  # type: ignore[arg-type]


def _sql(text: str, scale: float, n: int) -> Call:
    connection = _connection(n)
    return lambda: connection.execute(text).fetchall()


def _private_few(scale: float, n: int, of: Callable[[int], sf.Session] = _session) -> Call:
    session = of(n)
    return in_a_row(lambda: session.query(few(), epsilon=Fraction(1, 1000)), n)


def _plain_few(scale: float, n: int) -> Call:
    connection = _connection(n)
    return in_a_row(lambda: connection.execute(few()).fetchall(), n)


def _works() -> dict[str, Make]:
    made: dict[str, Callable[[float, int], Call]] = {
        "W7": _private_few,
        "W7 prepared": partial(_private_few, of=_prepared),
        "W7 plain": _plain_few,
    }
    for name, question in QUESTIONS.items():
        made[name] = partial(_private, name)
        made[f"{name} prepared"] = partial(_private, name, of=_prepared)
        made[f"{name} plain"] = partial(_sql, question)
    made |= {f"{name} by hand": partial(_sql, text) for name, text in BY_HAND.items()}
    groups = dict.fromkeys(("W2", "W4", "W5"), lambda told: {row[0]: row[1] for row in told.rows})
    return made | errors(made, groups | {"W1": lambda told: {"all": told.rows[0][0]}})


WORKS = _works()
