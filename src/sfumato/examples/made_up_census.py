# SPDX-License-Identifier: Apache-2.0
"""A made-up population in a geography of four levels: nation > state > county > tract.

It is drawn from a fixed seed. Nobody in it exists, so exact counts may be shown.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.metadata.column import Category
from sfumato.metadata.table import Table
from sfumato.noise import Integers
from sfumato.synopsis.geography.spine import Spine

LEVELS = "nation > state > county > tract"
AGES = ("0-14", "15-24", "25-44", "45-64", "65+")
SEXES = ("female", "male")
RACES = ("A", "B", "C", "D", "E")
_STATES = 8


@dataclass(frozen=True, eq=False)
class MadeUp:
    """A made-up census population: the private table, its spine (the hierarchy of areas), and the
    exact counts.

    ``counts`` has, for each tract in the order of the spine, the persons by age, sex and race.
    """

    table: Table
    spine: Spine
    counts: Integers


def made_up(persons: int = 200_000, seed: int = 1) -> MadeUp:
    """Draws about ``persons`` persons; most live in few tracts, and races are segregated."""
    draws = np.random.default_rng(seed)
    rows = _areas(draws)
    spine = Spine(LEVELS, pa.table(rows))
    tracts = spine.tree.sizes[-1]
    size = draws.lognormal(0, 1, tracts)
    size *= persons / size.sum()
    ages = draws.dirichlet([8, 5, 10, 9, 6], tracts)
    races = draws.dirichlet([2, 0.6, 0.4, 0.2, 0.05], tracts)
    people = size[:, None, None, None] * ages[:, :, None, None] * races[:, None, None, :]
    counts = draws.poisson(np.broadcast_to(people / 2, (tracts, len(AGES), 2, len(RACES))))
    columns = {
        "tract": Category(*spine.codes[-1]),
        "age": Category(*AGES),
        "sex": Category(*SEXES),
        "race": Category(*RACES),
    }
    return MadeUp(Table(_persons(spine, counts), columns=columns), spine, counts)


def _areas(draws: np.random.Generator) -> dict[str, list[str]]:
    """A row for each tract."""
    rows: dict[str, list[str]] = {"nation": [], "state": [], "county": [], "tract": []}
    for state in range(_STATES):
        for county in range(int(draws.integers(4, 13))):
            for tract in range(int(draws.integers(5, 26))):
                rows["nation"].append("all")
                rows["state"].append(f"{state:02}")
                rows["county"].append(f"{state:02}{county:03}")
                rows["tract"].append(f"{state:02}{county:03}{tract:03}")
    return rows


def _persons(spine: Spine, counts: Integers) -> pa.Table:
    """A row for each person."""
    places = np.repeat(np.arange(counts.size), counts.ravel())
    tract, age, sex, race = np.unravel_index(places, counts.shape)
    columns = {}
    for name, labels, codes in (
        ("tract", spine.codes[-1], tract),
        ("age", AGES, age),
        ("sex", SEXES, sex),
        ("race", RACES, race),
    ):
        columns[name] = pa.array(labels).take(pa.array(codes))
    return pa.table(columns)
