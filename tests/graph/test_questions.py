# SPDX-License-Identifier: Apache-2.0
"""A limit of degrees is a positive number, or is selected."""

import pytest

from sfumato.errors import InvalidNumber
from sfumato.graph.questions import MOST_DEGREE, Degrees, Edges


@pytest.mark.parametrize("question", [Edges, Degrees])
def test_a_limit_of_degrees_is_a_number(question):
    assert question().max_degree is None
    assert question(max_degree=MOST_DEGREE).max_degree == 2**20
    for wrong in (0, -1, 2**20 + 1, True, 1.5, "64"):
        with pytest.raises(InvalidNumber, match="max_degree"):
            question(max_degree=wrong)
