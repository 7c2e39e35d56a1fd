# SPDX-License-Identifier: Apache-2.0
"""Estimators of scikit-learn: every fit and every score of a search is charged or refused."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import BudgetExceeded, WrongUse
from sfumato.learning import declared_rows
from sfumato.learning.sklearn import (
    Classifier,
    Clusterer,
    Declared,
    Folds,
    Projection,
    Regressor,
    RowsArePersons,
    private_score,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:Each row counts:sfumato.learning.sklearn.RowsArePersons"
)
RANDOM = np.random.default_rng(5)
X = np.stack([RANDOM.integers(0, 100, 1500), RANDOM.uniform(0, 10, 1500)], axis=1)
ABOVE = X[:, 0] > 50
Y = ABOVE.astype(int) + 3
COLUMNS: Any = {"age": sf.Integer(0, 99), "pay": sf.Real(0, 10)}


def declared(folder: Path, label: Any = None, budget: Any = 10) -> Declared:
    limit = sf.Budget(budget, "1e-5")
    return Declared(folder / "l.db", "town", COLUMNS, label, limit)


def classifier(folder: Path, budget: Any = 10, **more: Any) -> Classifier:
    asked = {"epsilon": 1, "score_epsilon": "0.25", **more}
    # the classes 3 and 4, and 2 that has no rows
    rows = declared(folder, sf.Integer(2, 4), budget)
    return Classifier(ln.DecisionTree(bins=8, depth=1), rows, **asked)


def boolean(folder: Path, label: Any = None, **more: Any) -> Classifier:
    rows = declared(folder, label or sf.Boolean(), 50)
    return Classifier(ln.DecisionTree(bins=8, depth=1), rows, epsilon=4, score_epsilon=4, **more)


def spent(model: Classifier) -> str:
    with model.declared.of_classes.session(X, Y, "look") as session:
        return str(session.budget.spent)


def test_a_fit_predicts_labels_as_they_were_declared(tmp_path: Path) -> None:
    model = classifier(tmp_path).fit(X, Y)
    assert model.classes_.tolist() == [2, 3, 4]
    assert (model.predict(X) == Y).mean() > 0.9
    shares = model.predict_proba([[10, 5], [90, 5], [float("nan"), "?"]])
    assert shares.shape == (3, 3) and shares[:2].argmax(axis=1).tolist() == [1, 2]
    assert (model.n_features_in_, model.cost_.epsilon) == (2, "1")


def test_the_same_objects_again_are_free_and_equal_ones_are_not(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    charge = model.fit(X, Y).model_.charge
    assert clone(model).fit(X, Y).model_.charge == charge
    assert spent(model) == "1"
    # whether the rows are equal is a fact about them
    assert model.fit(X.copy(), Y).model_.charge != charge
    assert spent(model) == "2"


def test_a_stated_version_is_free_and_names_one_set_of_rows(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    copy = X.copy()
    charge = model.fit(copy, Y, version="2026").model_.charge
    assert model.fit(copy, Y, version="2026").model_.charge == charge
    with pytest.raises(WrongUse, match="other rows"):
        model.fit(X[:100], Y[:100], version="2026")
    del copy
    # as in another process: the door knows the version
    again = X.copy()
    assert model.fit(again, Y, version="2026").model_.charge == charge


def test_every_fold_is_charged_for_its_fit_and_its_score(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    search = GridSearchCV(model, {"recipe__depth": [1, 2]}, cv=Folds(model.declared, 2))
    search.fit(X, Y)
    assert search.best_score_ > 0.8
    assert spent(model) == "6" and search.best_estimator_.recipe.depth in (1, 2)


@pytest.mark.long
def test_processes_that_share_a_ledger_in_a_file_lose_no_fit(tmp_path: Path) -> None:
    model = boolean(tmp_path)
    scores = cross_val_score(model, X, ABOVE, cv=Folds(model.declared, 4), n_jobs=2)
    assert scores.shape == (4,) and scores.min() > 0.8
    with model.declared.session(X, ABOVE, "look") as look:
        assert look.budget.spent == "32"


def test_folds_that_the_budget_does_not_reach_are_refused(tmp_path: Path) -> None:
    model = classifier(tmp_path, budget=2)
    with pytest.warns(FitFailedWarning, match="1 fits failed"):
        scores = cross_val_score(model, X, Y, cv=Folds(model.declared, 2))
    assert np.isnan(scores).tolist() == [False, True]
    assert spent(model) == "1.25"
    with pytest.raises(BudgetExceeded):
        model.fit(X, Y)


def test_a_score_is_charged_or_refused(tmp_path: Path) -> None:
    model = classifier(tmp_path, score_epsilon=None)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, Y)
    with pytest.raises(WrongUse, match="nobody pays"):
        model.score(X, Y)
    with pytest.raises(NotFittedError):
        classifier(tmp_path).score(X, Y)
    assert spent(model) == "1"


def test_a_score_without_a_price_is_refused_before_the_first_fit(tmp_path: Path) -> None:
    model = classifier(tmp_path, score_epsilon=None)
    folds = Folds(model.declared, 2)
    with pytest.raises(WrongUse, match="nobody pays"):
        GridSearchCV(model, {"recipe__depth": [1]}, cv=folds).fit(X, Y)
    with pytest.raises(WrongUse, match="nobody pays"):
        cross_val_score(model, X, Y, cv=folds)
    # a pipeline has no score where its last step has none
    with pytest.raises(TypeError, match="score"):
        cross_val_score(make_pipeline(model), X, Y, cv=folds)
    pay = Regressor(ln.Ridge(), declared(tmp_path, sf.Real(0, 9)), rho="0.1")
    with pytest.raises(WrongUse, match="score of a number"):
        cross_val_score(pay, X, X[:, 1], cv=folds)
    assert spent(model) == "0"


def test_a_private_score_is_charged_and_no_other_is_counted(tmp_path: Path) -> None:
    model = boolean(tmp_path)
    pipeline = make_pipeline(FunctionTransformer(np.round), model).fit(X, ABOVE)
    assert private_score(pipeline, X, ABOVE) > 0.9
    with declared(tmp_path, sf.Boolean(), 50).session(X, ABOVE, "look") as look:
        assert look.budget.spent == "8"
    with pytest.raises(WrongUse, match="VotingClassifier"):
        private_score(VotingClassifier([("t", model)]), X, Y)


# --- rows that are no persons, and what is fitted around -----------------------------------------


def test_a_fit_without_a_unit_always_warns_and_one_with_a_unit_does_not(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    with pytest.warns(RowsArePersons) as warned:
        model.fit(X, Y)
        clone(model).fit(X[:0], Y[:0])
    assert len(warned) == 2 and {str(each.filename) for each in warned} == {__file__}
    said = str(warned[0].message)
    for cause in ("oversampling", "bootstrap", "SMOTE", "scaler", "Stacking", "Calibrated"):
        assert cause in said
    unit = sf.Unit("who", max_rows_total=1)
    rows = Declared(tmp_path / "u.db", "u", {"age": COLUMNS["age"]}, unit=unit, budget=sf.Budget(9))
    frame = pd.DataFrame({"age": X[:, 0], "who": np.arange(1500) // 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Clusterer(ln.KMeans(2), rows, epsilon=1).fit(frame)


@pytest.mark.parametrize(
    "around",
    [
        lambda model: make_pipeline(MinMaxScaler(), model),
        lambda model: StackingClassifier([("t", model)], cv=2),
        lambda model: CalibratedClassifierCV(model, cv=2),
        lambda model: BaggingClassifier(model, n_estimators=2, bootstrap=True),
    ],
)
def test_what_is_fitted_around_an_estimator_is_never_silent(tmp_path: Path, around: Any) -> None:
    with pytest.warns(RowsArePersons, match="is not private"):
        around(boolean(tmp_path)).fit(X[:200], ABOVE[:200])


def test_weights_are_refused_before_the_charge(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    with pytest.raises(WrongUse, match="sample_weight"):
        model.fit(X, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(WrongUse, match="sample_weight"):
        Clusterer(ln.KMeans(2), declared(tmp_path)).fit(X, sample_weight=np.ones(len(Y)))
    assert spent(model) == "0"


# --- labels of every type, in ensembles ----------------------------------------------------------

LABELS = {
    "text": (sf.Category("yes", "no"), np.where(ABOVE, "yes", "no"), {}),
    "boolean": (sf.Boolean(), ABOVE, {}),
    "spelt": (sf.Boolean(true="y", false="n"), np.where(ABOVE, "y", "n"), {}),
    "integer": (sf.Integer(0, 1), ABOVE.astype(int), {}),
    "integers from 3": (sf.Integer(3, 4), ABOVE + 3, {"encoded": True}),
    "text of numbers": (sf.Category("1", "2"), np.where(ABOVE, "2", "1"), {"encoded": True}),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize(
    "around",
    [
        lambda model: VotingClassifier([("t", model)], voting="soft"),
        lambda model: VotingClassifier([("t", model), ("u", model)], voting="hard"),
        OneVsRestClassifier,
        lambda model: BaggingClassifier(model, n_estimators=2, bootstrap=False),
    ],
    ids=["soft", "hard", "one", "bag"],
)
def test_ensembles_learn_labels_of_every_type(tmp_path: Path, around: Any, labels: Any) -> None:
    kind, given, more = labels
    fitted = around(boolean(tmp_path, kind, **more)).fit(X, given)
    assert (fitted.predict(X) == given).mean() > 0.9


@pytest.mark.parametrize("name", ["text", "boolean", "integer"])
def test_a_search_learns_labels_of_every_type(tmp_path: Path, name: str) -> None:
    kind, given, _ = LABELS[name]
    model = boolean(tmp_path, kind)
    folds = Folds(model.declared, 2)
    search = GridSearchCV(model, {"recipe__depth": [1]}, cv=folds).fit(X, given)
    assert search.best_score_ > 0.9 and (search.predict(X) == given).mean() > 0.9


def test_truth_values_are_labels_of_an_integer(tmp_path: Path) -> None:
    model = boolean(tmp_path, sf.Integer(0, 1))
    assert (model.fit(X, ABOVE).predict(X) == ABOVE).mean() > 0.9
    assert model.score(X, ABOVE) > 0.9


# --- types that can hold no declared value -------------------------------------------------------

WORDS = sf.Category("no", "yes")


def words(folder: Path) -> Classifier:
    columns = {"ill": WORDS}
    rows = Declared(folder / "w.db", "w", columns, WORDS, sf.Budget(9))
    return Classifier(ln.NaiveBayes(), rows, epsilon=2, score_epsilon=2)


ILL = np.array(["no", "yes"] * 400)
BAD: Any = [
    (pd.DataFrame({"ill": ILL == "yes"}), ILL),
    (pd.DataFrame({"ill": (ILL == "yes").astype("uint8")}), ILL),
    (pd.DataFrame({"ill": pd.array([1, None] * 400, "Int64")}), ILL),
    (pa.table({"ill": (ILL == "yes").tolist()}), ILL),
    ((ILL == "yes").reshape(-1, 1), ILL),
    (pd.DataFrame({"ill": ILL}), ILL == "yes"),
    (pd.DataFrame({"ill": ILL}), pd.array([True, None] * 400, "boolean")),
]


@pytest.mark.parametrize(("rows", "labels"), BAD)
def test_a_type_that_holds_no_declared_value_is_refused_before_the_charge(
    tmp_path: Path, rows: Any, labels: Any
) -> None:
    model = words(tmp_path)
    with pytest.raises(WrongUse, match="none of its declared values"):
        model.fit(rows, labels)
    assert not (tmp_path / "w.db").exists()
    model.fit(pd.DataFrame({"ill": ILL}), ILL)
    with pytest.raises(WrongUse, match="none of its declared values"):
        model.score(rows, labels)
    if labels is ILL:
        with pytest.raises(WrongUse, match="none of its declared values"):
            model.predict(rows)
    with model.declared.session(pd.DataFrame({"ill": ILL}), ILL, "look") as look:
        assert look.budget.spent == "2"


def test_a_float_column_and_an_untyped_one_are_read_whatever_they_hold(tmp_path: Path) -> None:
    model = words(tmp_path)
    # pandas makes floats of integers where one is missing
    for ill in (np.array([0.0, 1.0] * 400), np.array([True, None] * 400, dtype=object)):
        model.fit(pd.DataFrame({"ill": ill}), ILL)
    assert model.predict([["no"], [None]]).shape == (2,)


def test_without_the_check_a_fit_would_be_charged_and_learn_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared_rows, "require_word", lambda *_: None)
    rows, labels = BAD[0]
    model = words(tmp_path).fit(rows, labels)
    assert model.cost_.epsilon == "2" and model.declared.frame(rows) == {"ill": [None] * 800}


def test_parameters_clones_pipelines_and_pickles(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    copied = pickle.loads(pickle.dumps(clone(model)))
    assert copied.get_params()["recipe__depth"] == 1
    assert copied.set_params(recipe__depth=2, epsilon=3).recipe == ln.DecisionTree(bins=8, depth=2)
    assert (model.recipe.depth, model.epsilon, copied.epsilon) == (1, 1, 3)
    with pytest.raises(WrongUse, match="recipe__dept'"):
        model.set_params(recipe__dept=2)
    with pytest.raises(TypeError, match="declared"):
        Classifier(ln.NaiveBayes())  # type: ignore[call-arg]
    pipeline = make_pipeline(FunctionTransformer(np.round), model).fit(X, Y)
    assert pipeline.score(X, Y) > 0.8


def test_regressors_clusterers_and_projections(tmp_path: Path) -> None:
    of_pay = {"age": sf.Integer(0, 99)}
    rows = Declared(tmp_path / "r.db", "r", of_pay, sf.Real(0, 10), sf.Budget(9, "1e-5"))
    regressor = Regressor(ln.Ridge(), rows, rho="0.1")
    pay = X[:, 0] / 10
    assert abs(regressor.fit(X[:, :1], pay).predict([[50]])[0] - 5) < 1
    with pytest.raises(WrongUse, match="public rows"):
        regressor.score(X[:, :1], pay)
    groups = Clusterer(ln.KMeans(2), declared(tmp_path), epsilon=2)
    assert groups.fit_predict(X).shape == (1500,) and groups.cluster_centers_.shape == (2, 2)
    plane = Projection(ln.PCA(1), declared(tmp_path), rho="0.1")
    assert plane.fit_transform(X).shape == (1500, 1) and plane.components_.shape == (1, 2)
    assert plane.inverse_transform(plane.transform(X)).shape == (1500, 2)
