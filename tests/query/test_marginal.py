# SPDX-License-Identifier: Apache-2.0
"""One marginal against its proved distance, on all neighbours of small tables, with a broken
weight.
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import reference
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Norm
from sfumato.query.marginal import Marginal
from sfumato.query.marginals import marginal_cube
from sfumato.query.statistic import Opened

ROWS = [
    {"who": who, "sex": sex, "smoker": smoker}
    for who in "ab"
    for sex in "FM"
    for smoker in (True, None)
]
CLIQUES = [("sex",), ("sex", "smoker"), ()]


def cube(relation: object = sf.AddRemove) -> BoundedCube:
    """Two rows of each unit count in full."""
    columns = {"sex": sf.Category("F", "M"), "smoker": sf.Boolean()}
    table = sf.Table(
        pa.Table.from_pylist(ROWS), unit=sf.Unit("who", max_rows_total=2), columns=columns
    )
    return marginal_cube(Dataset("tiny", {"people": table}, relation), "people", CLIQUES)


def exact(statistic: Marginal, rows: list[dict[str, object]]) -> list[int]:
    opened = Opened(statistic.plan, cube=Reference({"people": rows}).cube(statistic.plan))
    with opened:
        return statistic.exact(opened).tolist()


def farthest(statistic: Marginal, *, replaced: bool = False) -> dict[Norm, int]:
    """How far any small table is from the same without a unit, or with the other one in its
    place.
    """
    most = dict.fromkeys(Norm, 0)
    mine = [[row for row in ROWS if row["who"] == who] for who in "ab"]
    for size in range(5):
        for rows in itertools.combinations(mine[0], size):
            others = [()] if not replaced else itertools.combinations(mine[1], 3)
            for other in others:
                moved = np.abs(
                    np.subtract(exact(statistic, list(rows)), exact(statistic, list(other)))
                ).astype(object)
                found = {Norm.L1: moved.sum(), Norm.L2: (moved**2).sum(), Norm.LINF: moved.max()}
                most = {norm: max(most[norm], found[norm]) for norm in Norm}
    return most


@pytest.mark.parametrize("clique", CLIQUES)
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_a_marginal_moves_by_at_most_its_proved_distance(
    clique: tuple[str, ...], relation: object
) -> None:
    statistic = Marginal(cube(relation), clique)
    found = farthest(statistic, replaced=relation is sf.ReplaceOne)
    assert all(found[norm] <= statistic.distance(norm).value for norm in Norm)


def test_rows_that_are_not_weighed_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_weight", lambda plan, held: plan.refinement)
    statistic = Marginal(cube(), ("sex",))
    found = farthest(statistic)
    assert any(found[norm] > statistic.distance(norm).value for norm in Norm)


def test_a_marginal_of_another_cube_is_refused() -> None:
    opened = Opened(cube(), cube=Reference({"people": ROWS}).cube(cube()))
    with opened, pytest.raises(InvalidDeclaration):
        Marginal(cube(sf.ReplaceOne), ("sex",)).exact(opened)


def test_a_cube_is_closed_when_it_is_left() -> None:
    statistic = Marginal(cube(), ("sex",))
    opened = Opened(statistic.plan, cube=Reference({"people": ROWS}).cube(statistic.plan))
    with opened:
        statistic.exact(opened)
    with pytest.raises(InvalidDeclaration):
        statistic.exact(opened)
