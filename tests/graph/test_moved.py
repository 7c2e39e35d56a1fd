# SPDX-License-Identifier: Apache-2.0
"""What replaces one edge or node moves a statistic twice as far."""

from fractions import Fraction

import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.graph.edge_count import EdgeCount
from sfumato.graph.kept_degrees import KeptDegrees
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import AddRemove, ReplaceOne
from tests.contracts.graphs import EDGE, NODE, replacing


def test_a_replaced_one_is_removed_and_another_added():
    for plan, relation, times in ((NODE, AddRemove, 1), (replacing(NODE), ReplaceOne, 2)):
        statistic = KeptDegrees(plan, 2, 7)
        assert statistic.distance(Norm.L1) == Distance(Norm.L1, Fraction(7 * times), relation)
        assert statistic.distance(Norm.L2) == Distance(Norm.L2, Fraction(49 * times**2), relation)


def test_nothing_is_proved_in_a_norm_that_is_not_stated():
    with pytest.raises(InvalidDeclaration, match="Linf"):
        EdgeCount(EDGE).distance(Norm.LINF)


def test_a_graph_of_the_other_unit_is_refused():
    for wrong in (
        lambda: EdgeCount(NODE),
        lambda: KeptDegrees(EDGE, 1, 2),
        lambda: EdgeCount(None),
    ):
        with pytest.raises(InvalidDeclaration, match="another unit"):
            wrong()
