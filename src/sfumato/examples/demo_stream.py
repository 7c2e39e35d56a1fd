# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo stream``: rides day by day under one charge; ten years of births denoised."""

import csv
import math
import tempfile
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from rich.console import Console

from sfumato.errors import Failed
from sfumato.examples.demo import say
from sfumato.metadata.column import Category, Date
from sfumato.metadata.table import Table
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import Unit
from sfumato.query.connect import connect
from sfumato.query.session import Session
from sfumato.show.render import number, text_table
from sfumato.synopsis.denoise import denoise
from sfumato.synopsis.stream import stream
from sfumato.synopsis.stream_plan import plan_stream
from sfumato.synopsis.workload import Floats

DAYS = Path(__file__).parent / "days"
# A row stands for so many rides, and this many cards are used in turn.
_RIDES, _CARDS = 10_000, 400
_HORIZON = 61
_RHO = "0.5"


@click.command("stream")
def command() -> None:
    """Count rides day by day, as single rides and as cards; denoise ten years of births."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-stream-") as folder:
        trips = rides()
        source = Table(
            trips,
            unit=Unit("card"),
            columns={"day": Date("2022-09-01", "2022-12-31"), "line": Category("subway", "bus")},
        )
        budget = Budget(epsilon=10, delta="1e-6")
        ledger = Path(folder) / "ledger.db"
        with connect({"trips": source}, dataset="city", budget=budget, ledger=ledger) as session:
            console.print(f"Rides in New York, a row for each {_RIDES:,}; made-up cards\n")
            say(console, "One ride is protected, or all rides of a card", _units(session))
            say(console, "Day by day, under one charge", _daily(session, trips))
    say(console, "Ten years of births, each birth protected", _births())


def rides() -> pa.Table:
    """A table with a row for each 10,000 rides of a day, each with a made-up card."""
    days, lines = [], []
    for row in _read("ridership.csv"):
        for line in ("subway", "bus"):
            count = int(row[line]) // _RIDES
            days += [row["day"]] * count
            lines += [line] * count
    cards = [f"card {place % _CARDS}" for place in range(len(days))]
    return pa.table({"card": cards, "day": days, "line": lines})


def _units(session: Session) -> str:
    """The standard error of running totals, by how often a card counts."""
    body = []
    for participations in (1, 8, _HORIZON):
        plan = plan_stream(
            session.dataset,
            "trips",
            time="day",
            by=["line"],
            horizon=_HORIZON,
            rho=_RHO,
            participations=participations,
        )
        error = number(math.sqrt(plan.best.mean))
        body.append([f"{participations} days", plan.best.name, f"+- {error}"])
    return text_table(["a card counts on", "encoder", "standard error"], body)


def _daily(session: Session, trips: pa.Table) -> str:
    """Advances a stream day by day; shows some days beside the exact counts."""
    body = []
    with stream(
        session,
        "trips",
        time="day",
        by=["line"],
        horizon=_HORIZON,
        rho=_RHO,
        participations=_HORIZON,
        rows=2,
    ) as found:
        for row in _read("ridership.csv"):
            counts = found.advance(row["day"])
            if row["day"].endswith(("-01", "-15")):
                body.append([row["day"], repr(counts["subway"]), repr(counts["bus"])])
        week = found.window(7)
        body.append(["the last 7 days", repr(week["subway"]), repr(week["bus"])])
        left = repr(found)
    table = text_table(["until", "subway, in all", "bus, in all"], body)
    _require("there are five lines", holds=len(body) == 5)
    counted = f"{trips.num_rows:,} rows; of a card two count each day"
    return f"{table}\n{left}\n{counted}\n{session.budget!r}"


def _births() -> str:
    """The error of the births of a day, raw and denoised, at two costs."""
    truth = np.array([float(row["births"]) for row in _read("births.csv")])
    body = []
    for rho in (1e-7, 1e-6):
        noise = DiscreteGaussian(sigma_squared=round(1 / (2 * rho)))
        noisy: Floats = truth + noise.sample(len(truth)).astype(float)
        deviation = math.sqrt(1 / (2 * rho))
        errors = [_error(noisy, truth), _error(denoise(noisy, deviation).values, truth)]
        ratio = errors[1] / errors[0]
        body.append([f"{rho:g}", *map(number, errors), f"{ratio:.2f}"])
        _require("denoised counts are nearer", holds=ratio < 0.75)
    header = ["rho a birth", "error of a day", "denoised", "ratio"]
    mean = number(float(truth.mean()))
    return f"{text_table(header, body)}\nthere are {mean} births on a day; denoising is free"


def _error(values: Floats, truth: Floats) -> float:
    """The root mean squared error of a series."""
    return float(np.sqrt(np.mean((values - truth) ** 2)))


def _require(what: str, *, holds: bool) -> None:
    """Raises Failed if a result of the demo is not as expected."""
    if not holds:
        raise Failed(f"The demo expected that {what}.")


def _read(name: str) -> list[dict[str, str]]:
    """The rows of a file of the demo."""
    with (DAYS / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
