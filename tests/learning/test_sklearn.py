# SPDX-License-Identifier: Apache-2.0
"""Estimators of scikit-learn: every fit and every score of a search is charged or refused."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import BudgetExceeded, WrongUse
from sfumato.learning.sklearn import Classifier, Clusterer, Declared, Folds, Projection, Regressor

RANDOM = np.random.default_rng(5)
X = np.stack([RANDOM.integers(0, 100, 1500), RANDOM.uniform(0, 10, 1500)], axis=1)
Y = (X[:, 0] > 50).astype(int) + 3
COLUMNS: Any = {"age": sf.Integer(0, 99), "pay": sf.Real(0, 10)}


def declared(folder: Path, label: Any = None, budget: Any = 10) -> Declared:
    limit = sf.Budget(budget, "1e-5")
    return Declared(folder / "l.db", "town", COLUMNS, label, limit)


def classifier(folder: Path, budget: Any = 10, **more: Any) -> Classifier:
    asked = {"epsilon": 1, "score_epsilon": "0.25", **more}
    # the classes 3 and 4, and 2 that has no rows
    rows = declared(folder, sf.Integer(2, 4), budget)
    return Classifier(ln.DecisionTree(bins=8, depth=1), rows, **asked)


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
    with pytest.raises(NotFittedError):
        model.score(X, Y)
    model.fit(X, Y)
    with pytest.raises(WrongUse, match="nobody pays"):
        model.score(X, Y)
    assert spent(model) == "1"


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


def test_one_row_more_moves_no_other_to_another_fold() -> None:
    rows = Declared("l.db", "town", COLUMNS)
    less = {tuple(X[place]) for _, test in [next(Folds(rows).split(X[1:]))] for place in test + 1}
    all_of_them = {tuple(X[place]) for place in next(Folds(rows).split(X))[1]}
    assert all_of_them - less <= {tuple(X[0])} and less <= all_of_them
    persons = Declared("l.db", "town", COLUMNS, unit=sf.Unit("who", max_rows_total=9))
    frame = pd.DataFrame({"age": X[:, 0], "pay": X[:, 1], "who": np.arange(1500) // 3})
    # a unit that is written in several ways is one, as for a session
    alike = {"age": [1] * 4, "pay": [2] * 4, "who": [7, 7.0, "7", np.float32(7)]}
    assert {len(held) for _, held in Folds(persons, 50).split(alike)} == {0, 4}
    for kept, held in Folds(persons, 4).split(frame):
        assert not set(frame["who"][kept]) & set(frame["who"][held])
