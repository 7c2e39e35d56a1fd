# SPDX-License-Identifier: Apache-2.0
"""Any model that says how its predictions are counted can be scored."""

import pytest

from sfumato import learning as ln
from sfumato.learning.scorable import Scorable


def test_a_model_without_outcomes_cannot_be_made() -> None:
    class Half(Scorable):
        @property
        def fingerprint(self) -> str:
            return "half"

    with pytest.raises(TypeError, match="outcomes"):
        Half()  # type: ignore[abstract]
    assert issubclass(ln.Model, Scorable)
