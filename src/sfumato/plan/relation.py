# SPDX-License-Identifier: Apache-2.0
"""Where rows come from."""

from dataclasses import dataclass
from typing import TypeAlias

from sfumato.plan.scalar import Scalar


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a declared table, each value as its code."""

    table: str


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which ``predicate`` is TRUE (not FALSE, not NULL)."""

    source: "Relation"
    predicate: Scalar


Relation: TypeAlias = Scan | Filter


def scanned(relation: Relation) -> Scan:
    """The scan below the filters."""
    while isinstance(relation, Filter):
        relation = relation.source
    return relation


def predicates(relation: Relation) -> list[Scalar]:
    """The filters above the scan, lowest first."""
    found: list[Scalar] = []
    while isinstance(relation, Filter):
        found.insert(0, relation.predicate)
        relation = relation.source
    return found
