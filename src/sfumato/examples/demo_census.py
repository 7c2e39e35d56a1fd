# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo census``: tables of the extract, and of a made-up country with exact counts."""

import math
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from sfumato.cli.options import require_spared, write_file
from sfumato.cli.page_language import in_language
from sfumato.errors import Failed, WrongUse
from sfumato.examples.census import PUBLISHED_SIZE, census
from sfumato.examples.demo import say
from sfumato.examples.made_up_census import MadeUp, made_up
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.show.render import number, text_table
from sfumato.synopsis.geography.census import Census, measure_census
from sfumato.synopsis.geography.facts import public_totals
from sfumato.synopsis.geography.least_squares import by_axes
from sfumato.synopsis.geography.plan import CensusPlan, census_plan
from sfumato.synopsis.geography.spine import Spine

BUDGET = Budget(epsilon=3, delta="1e-6")
SPINE = Path(__file__).parent / "census" / "spine.csv"
RHO = "0.05"
AGE_GROUP = (
    "CASE WHEN AGEP < 15 THEN '0-14' WHEN AGEP < 25 THEN '15-24' "
    "WHEN AGEP < 65 THEN '25-64' ELSE '65+' END"
)
STATUS = (
    "CASE WHEN MSP IS NULL THEN 'under 15' WHEN MSP IN ('married', 'spouse absent') "
    "THEN 'married' ELSE 'not married' END"
)
# Nobody under 15 is married, and of nobody else the status is unknown.
ZEROS = (
    {"age_group": ["0-14"], "status": ["married", "not married"]},
    {"age_group": ["15-24", "25-64", "65+"], "status": ["under 15"]},
)
_DETAIL = [["age_group", "SEX", "status"], ["age_group"], ["SEX"], []]
TABLES = {"nation": _DETAIL, "state": _DETAIL, "PUMA": _DETAIL}
MADE_UP_TABLES = {
    level: [["age", "sex", "race"], ["age", "sex"], ["race"], []]
    for level in ("nation", "state", "county", "tract")
}


@click.command("census")
@click.option(
    "--page", default="demo-census.html", show_default=True, help="Where to write the page."
)
def command(page: str) -> None:
    """Measure census tables down two geographies, and write a page to look at."""
    require_spared(page)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-census-") as folder:
        write_file(page, in_language(_extract(console, Path(folder))).encode())
        _made_up(console, Path(folder))
    console.print(f"\n[bold]Written:[/bold] {page}")


def _extract(console: Console, folder: Path) -> str:
    """Runs a census of the extract over its geography; returns the page."""
    with connect(
        {"people": census()}, dataset="acs-2019", budget=BUDGET, ledger=folder / "acs.db"
    ) as session:
        planned = census_plan(
            session.dataset,
            "people",
            Spine("nation > state > PUMA", SPINE),
            tables=TABLES,
            recodes={"age_group": AGE_GROUP, "status": STATUS},
            rho=RHO,
            zeros=ZEROS,
            public_totals={"nation": {"United States": PUBLISHED_SIZE}},
        )
        say(console, "The census extract: the plan, before anything is paid", repr(planned))
        found = measure_census(session, planned)
    say(console, "Measured: quality beside the plan", repr(found.quality()))
    say(console, "The budget account", found.account)
    say(console, "Every area adds up", _sums(found))
    say(console, "Refused: exact totals of the private data", _refusal(planned))
    return found.page()


def _refusal(planned: CensusPlan) -> str:
    """The error message for public totals that would be read from the data."""
    wanted: Any = "state"
    try:
        public_totals(planned.spine, planned.design.tree, wanted)
    except WrongUse as refusal:
        return str(refusal)
    raise Failed("Totals that must be refused were accepted.")


def _sums(census: Census) -> str:
    """The published total of each level."""
    lines = []
    design = census.plan.design
    for level, counts in enumerate(census.counts):
        total = int(by_axes(counts, design.detail(level), ()).sum())
        size = design.tree.sizes[level]
        lines.append(f"{size:,} x {census.plan.spine.levels[level]}: {total:,} persons in all")
    return "\n".join(lines)


def _made_up(console: Console, folder: Path) -> None:
    """Runs a census of a made-up country, whose exact counts may be shown."""
    country = made_up()
    with connect(
        {"people": country.table}, dataset="made-up", budget=BUDGET, ledger=folder / "made-up.db"
    ) as session:
        planned = census_plan(
            session.dataset, "people", country.spine, tables=MADE_UP_TABLES, rho=RHO
        )
        found = measure_census(session, planned)
    title = f"A made-up country of {country.counts.sum():,}: {country.spine!r}"
    say(console, title, f"{errors(found, country)}\n{_EXPLAINED}")


_EXPLAINED = (
    "mean absolute error of a cell, in persons; alone: each table by a question of its own, at its "
    "share of\nthe same cost. The truth is known because nobody here exists."
)


def errors(census: Census, country: MadeUp) -> str:
    """The mean absolute error of each table, beside that of separate questions at the same cost."""
    plan = census.plan
    alone = _alone_error(plan)
    body = []
    for level, axes in plan.design.tables:
        published = _mean_error(census, country, level, axes)
        row = [plan.spine.levels[level], plan.title(axes), number(alone), number(published)]
        body.append([*row, f"{published / alone:.2f}"])
    return text_table(["level", "table", "alone", "census", "ratio"], body)


def _mean_error(census: Census, country: MadeUp, level: int, axes: tuple[int, ...]) -> float:
    """The mean absolute error of a published table."""
    design = census.plan.design
    places = design.tree.ancestors(level)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    truth = np.add.reduceat(country.counts, starts, axis=0)
    every = tuple(range(len(design.sizes)))
    published = by_axes(census.counts[level], design.detail(level), axes)
    return float(np.abs(published - by_axes(truth, every, axes)).mean())


def _alone_error(plan: CensusPlan) -> float:
    """The mean absolute error of a cell if each table is a question of its own at the same cost."""
    share = plan.allowance.amount / len(plan.design.tables)
    # Gaussian noise of variance 1 / (2 rho), whose mean absolute value is sqrt(2 / pi) deviations
    return math.sqrt(2 / math.pi / float(2 * share))
