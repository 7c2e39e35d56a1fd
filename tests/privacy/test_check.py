# SPDX-License-Identifier: Apache-2.0
"""Numbers, counts and bounds that an event may have, at their edges."""

from fractions import Fraction

import pytest

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy import Distance, Norm
from sfumato.privacy.event.check import check_count, check_scores, exact_positive


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1, 10**30)])
def test_what_is_not_above_zero_is_refused_by_name(value):
    with pytest.raises(InvalidNumber, match="The rate"):
        exact_positive("The rate", value)
    exact_positive("The rate", Fraction(1, 10**30))


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None])
def test_what_is_no_count_is_refused_by_name(value):
    with pytest.raises(InvalidNumber, match="keys"):
        check_count("keys", value)
    check_count("keys", 1)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_a_bound_on_all_scores_together_is_refused(norm):
    with pytest.raises(InvalidDeclaration, match=norm.value):
        check_scores(Distance(norm, Fraction(1)))
    check_scores(Distance(Norm.LINF, Fraction(1)))
