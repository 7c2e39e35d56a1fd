# SPDX-License-Identifier: Apache-2.0
"""The preview of a tuning: the law of the number of runs by hand, and that it costs nothing."""

import math
from pathlib import Path

import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning.tune_preview import TunePreview
from sfumato.noise import NegativeBinomial
from sfumato.query.cost import Cost
from tests.learning.rows import SELECT, connected, frame


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.99])
def test_the_number_of_runs_is_a_quantile_of_the_logarithmic_law(share: float) -> None:
    found = TunePreview(Cost("1", "1", "0", ()), NegativeBinomial(0, "0.05"), (1.0,), 1.0)

    def below(number: int) -> float:
        terms = (0.95**k / (k * -math.log(0.05)) for k in range(1, number + 1))
        return sum(terms)

    number = found.runs(share)
    assert below(number) >= share and (number == 1 or below(number - 1) < share)
    with pytest.raises(ValueError, match="share"):
        found.runs(1)


def test_a_preview_is_free_and_states_what_the_tuning_then_costs(tmp_path: Path) -> None:
    recipes = [ln.DecisionTree(depth=1, bins=4), ln.NaiveBayes(bins=4)]
    with connected(tmp_path, frame(500), sf.Budget(3, "1e-5")) as session:
        seen = ln.preview_tune(session, recipes, SELECT, label="ill", epsilon=1, runs=2)
        assert session.budget.spent == "0"
        tuned = ln.tune(session, recipes, SELECT, label="ill", epsilon=1, runs=2)
        assert tuned.cost == seen.cost and session.budget.spent == "1"
        with pytest.raises(WrongUse, match="list of recipes"):
            ln.preview_tune(session, [], SELECT, label="ill", epsilon=1)
        with pytest.raises(WrongUse, match="a number"):
            ln.preview_tune(session, recipes, SELECT, label="pay", epsilon=1)
    # a run has half of the epsilon, and an eighth of that is for its score: two counts
    # of which a person moves one by one
    scale = 1 / (0.5 / 8)
    assert seen.score == pytest.approx(math.sqrt(2) * scale, rel=0.1)
    assert 1.9 < seen.mean < 2.1
