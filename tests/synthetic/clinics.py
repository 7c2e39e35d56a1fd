# SPDX-License-Identifier: Apache-2.0
"""Clinics for tests: a tiny one to enumerate, and one with a few thousand patients."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.query.statistic import Opened
from sfumato.synthetic.relational import Family, family_of, rows_of
from sfumato.synthetic.unit_table import UnitTable

Tables = dict[str, list[dict[str, object]]]

TABLES = ("patients", "visits")
VISITS = list(itertools.product((0, 1), (0, 1)))


def tiny(relation: Any = sf.AddRemove) -> Dataset:
    """A patient has a sex and up to two visits, each with a day and a ward."""
    empty = pa.table({"id": ["a"]})
    bit = sf.Integer(0, 1)
    tables = {
        "patients": sf.Table(empty, unit=sf.Unit("id", max_rows_total=1), columns={"s": bit}),
        "visits": sf.Table(
            empty, unit=sf.Unit("id", max_rows_total=2), columns={"d": bit, "w": bit}
        ),
    }
    return Dataset("tiny", tables, relation)


def tiny_family(dataset: Dataset, order: str = "d") -> Family:
    """Its tables."""
    return family_of(dataset, TABLES, order={"visits": order})


def plan(table: int, relation: Any = sf.AddRemove, order: str = "d") -> UnitTable:
    """One of its tables, as rows with weights."""
    dataset = tiny(relation)
    family = tiny_family(dataset, order)
    return UnitTable(family, rows_of(dataset, family), table)


def all_of(who: str, most: int = 3) -> Iterator[Tables]:
    """Every choice of up to two patient rows of a unit, and up to so many visits."""
    for sexes in ((), (0,), (1,), (0, 1)):
        for size in range(most + 1):
            for chosen in itertools.combinations_with_replacement(VISITS, size):
                patients: list[dict[str, object]] = [{"id": who, "s": sex} for sex in sexes]
                visits: list[dict[str, object]] = []
                for day, ward in chosen:
                    visits.append({"id": who, "d": day, "w": ward})
                yield {"patients": patients, "visits": visits}


def together(one: Tables, other: Tables) -> Tables:
    """The rows of both."""
    return {name: [*one[name], *other[name]] for name in TABLES}


def counted(table: UnitTable, tables: Tables, cliques: list[tuple[str, ...]]) -> list[np.ndarray]:
    """The exact marginals of a tiny clinic."""
    opened = Opened(table.rows, rows=Reference(tables).rows(table.rows, "key"))
    with opened:
        return [table.marginal(opened, clique) for clique in cliques]


COLUMNS = {
    "patients": {"age": sf.Integer(0, 99), "sex": sf.Category("F", "M")},
    "visits": {
        "day": sf.Integer(0, 364),
        "ward": sf.Category("eye", "heart", "skin"),
        "cost": sf.Real(0, 1000),
    },
    "drugs": {"drug": sf.Category("drops", "statin", "cream"), "works": sf.Boolean(missing="?")},
}


def clinic(patients: int = 3000, seed: int = 1) -> dict[str, pa.Table]:
    """The old come often and to the heart ward, where they get statins; one in five never comes."""
    random = np.random.default_rng(seed)
    age = random.integers(0, 100, patients)
    numbers = np.where(random.uniform(size=patients) < 0.2, 0, random.binomial(6, age / 150))
    owner = np.repeat(np.arange(patients), numbers)
    is_heart = random.uniform(size=len(owner)) < age[owner] / 110
    ward = np.where(is_heart, 1, random.choice([0, 2], len(owner)))
    day = np.sort(random.integers(0, 365, len(owner)))[np.argsort(random.permutation(len(owner)))]
    prescribed = np.repeat(np.arange(len(owner)), random.integers(0, 3, len(owner)))
    wards = np.array(["eye", "heart", "skin"])
    drugs = np.array(["drops", "statin", "cream"])
    works = np.where(ward[prescribed] == 1, "true", "false")
    return {
        "patients": pa.table(
            {
                "pid": np.arange(patients),
                "age": age,
                "sex": np.array(["F", "M"])[random.integers(0, 2, patients)],
            }
        ),
        "visits": pa.table(
            {
                "pid": owner,
                "vid": np.arange(len(owner)),
                "day": day,
                "ward": wards[ward],
                "cost": 100.0 + 300 * ward + random.integers(0, 100, len(owner)),
            }
        ),
        "drugs": pa.table(
            {"vid": prescribed, "drug": drugs[ward[prescribed]], "works": works},
        ),
    }


def session(folder: Path, **other: Any) -> sf.Session:
    """A session over the clinic; ``most`` limits the visits of a patient."""
    rows = other.pop("rows", None) or clinic()
    most = other.pop("most", 5)
    units = {
        "patients": sf.Unit("pid", max_rows_total=1),
        "visits": sf.Unit("pid", max_rows_total=most),
        "drugs": sf.Unit("vid", via="visits.pid", max_rows_total=4),
    }
    tables = {}
    for name, columns in COLUMNS.items():
        tables[name] = sf.Table(rows[name], unit=units[name], columns=columns)
    return sf.connect(
        tables,
        dataset="clinic",
        budget=other.pop("budget", sf.Budget(1000, "1e-5")),
        ledger=folder / "l.db",
        **other,
    )
