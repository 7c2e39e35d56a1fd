# SPDX-License-Identifier: Apache-2.0
"""The census extract of the demo: its declarations, and the questions of a statistics office.

Bounds and values are those of the survey's data dictionary, or common knowledge (income); none is
derived from the file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from sfumato.metadata.column import Boolean, Category, ColumnType, Integer
from sfumato.metadata.table import Table
from sfumato.query.answer import Answer
from sfumato.query.session import Session

SOURCE = Path(__file__).parent / "census" / "national2019.csv"
# Published with the extract (its README): a public number, so it may be declared.
PUBLISHED_SIZE = 27_253

# The range of the codebook, and what sums and means of clipped incomes keep.
LOWEST_INCOME, HIGHEST_INCOME, KEPT_INCOME = -9_000, 1_341_000, 200_000

_AREAS = {
    "01-01301": "Birmingham AL",
    "06-07502": "San Francisco CA",
    "06-08507": "Cupertino CA",
    "08-00803": "Boulder CO",
    "13-04600": "Atlanta GA",
    "17-03529": "Chicago Hyde Park IL",
    "17-03531": "Chicago Chatham IL",
    "19-01700": "Des Moines IA",
    "24-01004": "Bethesda MD",
    "26-02702": "Ann Arbor MI",
    "28-01100": "Jackson MS",
    "29-01901": "St. Louis MO",
    "30-00600": "East Montana",
    "32-00405": "Las Vegas NV",
    "36-03710": "Bronx NY",
    "36-04010": "Brooklyn NY",
    "38-00100": "Minot ND",
    "40-00200": "Cherokee OK",
    "51-01301": "Arlington VA",
    "51-51255": "Alexandria VA",
}
_EDUCATION = {
    "1": "none",
    "2": "preschool",
    "3": "grade 1-8",
    "4": "grade 9-12",
    "5": "high school",
    "6": "GED",
    "7": "some college",
    "8": "associate",
    "9": "bachelor",
    "10": "master",
    "11": "professional",
    "12": "doctorate",
}
_MARITAL = {
    "1": "married",
    "2": "spouse absent",
    "3": "widowed",
    "4": "divorced",
    "5": "separated",
    "6": "never married",
}


def census() -> Table:
    """Returns the declared census table. It has no person id: each row is one person."""
    difficulty = Boolean(true="1", false="2", missing="N")
    # 'N' (not applicable) is NULL; without missing= it is not a group
    columns: dict[str, ColumnType] = {
        "PUMA": Category(_AREAS),
        "AGEP": Integer(0, 99),
        "SEX": Category({"1": "male", "2": "female"}),
        "MSP": Category(_MARITAL),
        "EDU": Category(_EDUCATION),
        "OWN_RENT": Category({"0": "group quarters", "1": "owned", "2": "rented"}),
        "PINCP": Integer(LOWEST_INCOME, HIGHEST_INCOME, clip=KEPT_INCOME, missing="N"),
        "POVPIP": Integer(0, 501, missing="N"),
        "DREM": difficulty,
        "DPHY": difficulty,
    }
    return Table(SOURCE, columns=columns, size=PUBLISHED_SIZE)


@dataclass(frozen=True, slots=True)
class Asked:
    """A SQL question of a demo, with a title and the privacy cost arguments of
    ``Session.query``.
    """

    title: str
    sql: str
    price: tuple[tuple[str, str], ...]

    def ask(self, session: Session) -> Answer:
        """Asks the question in a session, which charges it."""
        price: dict[str, Any] = dict(self.price)
        return session.query(self.sql, **price)

    @property
    def shown_price(self) -> str:
        """Returns the price as Python keyword arguments."""
        return ", ".join(f"{name}={value}" for name, value in self.price)


def _pure(title: str, epsilon: str, sql: str) -> Asked:
    """Returns a question at a price in pure differential privacy."""
    price = (("epsilon", epsilon),)
    return Asked(title, sql, price)


INCOME = _pure(
    "Mean income by sex, age 25 to 64",
    "0.2",
    "SELECT SEX, AVG(PINCP) AS mean_income, COUNT(PINCP) AS persons FROM people "
    "WHERE AGEP BETWEEN 25 AND 64 GROUP BY SEX",
)
QUESTIONS = (
    _pure("How many persons?", "0.05", "SELECT COUNT(*) AS persons FROM people"),
    _pure("Persons by sex", "0.05", "SELECT SEX, COUNT(*) AS persons FROM people GROUP BY SEX"),
    _pure(
        "Mean age by area",
        "0.2",
        "SELECT PUMA, AVG(AGEP) AS mean_age FROM people GROUP BY PUMA ORDER BY mean_age",
    ),
    _pure(
        "Education by sex, adults from 25",
        "0.2",
        "SELECT EDU, SEX, COUNT(*) AS persons FROM people WHERE AGEP >= 25 GROUP BY EDU, SEX",
    ),
    INCOME,
    _pure(
        "Total income by tenure",
        "0.2",
        "SELECT OWN_RENT, SUM(PINCP) AS total_income FROM people GROUP BY OWN_RENT",
    ),
    _pure(
        "Share with difficulty walking, from 65",
        "0.1",
        "SELECT SEX, 100 * AVG(DPHY) AS percent FROM people WHERE AGEP >= 65 GROUP BY SEX",
    ),
    _pure(
        "Areas with the most persons below the poverty line",
        "0.1",
        "SELECT PUMA, COUNT(*) AS poor FROM people WHERE POVPIP < 100 "
        "GROUP BY PUMA HAVING COUNT(*) > 100 ORDER BY poor DESC LIMIT 6",
    ),
    Asked(
        "Marital status by sex, with Gaussian noise",
        "SELECT MSP, SEX, COUNT(*) AS persons FROM people WHERE AGEP >= 15 GROUP BY MSP, SEX",
        (("rho", "0.005"),),
    ),
    Asked(
        "Persons of 65 and more, to within 60",
        "SELECT COUNT(*) AS persons FROM people WHERE AGEP >= 65",
        (("error", "60"), ("max_epsilon", "0.2")),
    ),
)
REFUSED = _pure(
    "The ten highest incomes", "0.1", "SELECT PINCP FROM people ORDER BY PINCP DESC LIMIT 10"
)


def true_incomes() -> dict[str, tuple[float, float]]:
    """The exact mean income by sex, unclipped and clipped to ``KEPT_INCOME``.

    The extract is published, so its means are public. Means of private data must never be printed.
    """
    income = "TRY_CAST(PINCP AS DOUBLE)"
    rows = duckdb.connect().execute(
        f"""SELECT SEX, avg({income}), avg(least({income}, {KEPT_INCOME}))
        FROM read_csv('{SOURCE}', all_varchar = true)
        WHERE TRY_CAST(AGEP AS INTEGER) BETWEEN 25 AND 64 GROUP BY SEX ORDER BY SEX"""
    )
    labels = {"1": "male", "2": "female"}
    return {labels[sex]: (mean, clipped) for sex, mean, clipped in rows.fetchall()}
