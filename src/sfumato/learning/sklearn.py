# SPDX-License-Identifier: Apache-2.0
"""Recipes as scikit-learn estimators; every fit and score is charged to a ledger.

Needs scikit-learn (the extra ``sklearn``); no other module imports this one. ``Classifier`` and
``Regressor`` predict a label, ``Clusterer`` and ``Projection`` describe rows. ``Declared`` states
which ledger pays and how the columns are declared; ``Folds`` divides rows for cross-validation.

The guarantee covers the rows that ``fit`` receives. Each row must be another person, or carry a
person's id (``Declared(unit=)``), and every earlier step must treat rows one by one. What
scikit-learn itself fits around an estimator (scalers, final estimators, calibrators, the classes of
an ensemble) is not private. No check may look at rows, so ``fit`` always warns without ``unit=``.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "sfumato.learning.sklearn needs scikit-learn: pip install 'sfumato[sklearn]'",
        name="sklearn",
    ) from None

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.declared_rows import Declared
from sfumato.learning.features import Floats
from sfumato.learning.fit import fit
from sfumato.learning.folds import Folds
from sfumato.learning.recipe import Recipe
from sfumato.learning.row_versions import VERSIONS
from sfumato.learning.score import score
from sfumato.noise import Integers
from sfumato.query.cost import Cost

__all__ = [
    "Classifier",
    "Clusterer",
    "Declared",
    "Folds",
    "Projection",
    "Regressor",
    "RowsArePersons",
    "private_score",
]

_ROWS_ARE_PERSONS = (
    "Each row counts as another person: there is no unit=. Copies of a row (oversampling, "
    "bootstrap=True) and rows made of several (SMOTE) break the stated epsilon, and so does a step "
    "that learns from all rows (a scaler, an imputer). What Stacking, Calibrated and Voting fit to "
    "labels is not private. Declared(unit=) bounds copies that carry the id of their person."
)
Own = TypeVar("Own", bound="_Estimator")
# What a setting of the recipe is called by set_params and by a grid.
_OF_RECIPE = "recipe__"


class RowsArePersons(UserWarning):
    """The warning that each row of a fit counts as another person, since ``Declared`` has no
    ``unit=``.

    >>> issubclass(RowsArePersons, UserWarning)
    True
    """


class _Priced:
    """A descriptor that hides the method ``score`` of an estimator that has no price for scores.

    scikit-learn looks for ``score`` before the first fit of a search, so the search is refused at
    no cost.
    """

    def __init__(self, method: Callable[..., float]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        estimator._require_price()
        return self.method.__get__(estimator, owner)


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """The common part of the estimators: a recipe, its cost, and the declarations with the
    ledger.
    """

    recipe: Recipe[Any]
    declared: Declared
    epsilon: Number | None
    rho: Number | None
    delta: Number | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """Returns the parameters; with ``deep`` also the settings of the recipe, as
        ``recipe__depth``.
        """
        found: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for each in fields(self.recipe):  # type: ignore[arg-type]
                found[_OF_RECIPE + each.name] = getattr(self.recipe, each.name)
        return found

    def set_params(self: Own, **params: Any) -> Own:
        """Sets parameters and settings of the recipe."""
        known = self.get_params()
        unknown = [name for name in params if name not in known]
        if unknown:
            raise WrongUse(f"Parameter {shown(unknown[0])}.", allowed=", ".join(known))
        settings = {}
        for name, value in params.items():
            if name.startswith(_OF_RECIPE):
                settings[name.removeprefix(_OF_RECIPE)] = value
            else:
                setattr(self, name, value)
        if settings:
            self.recipe = replace(self.recipe, **settings)  # type: ignore[type-var]
        return self

    @property
    def cost_(self) -> Cost:
        """The cost of the fit."""
        check_is_fitted(self)
        cost: Cost = self.model_.cost
        return cost

    @property
    @abstractmethod
    def _rows(self) -> Declared:
        """The declarations, checked for this kind of estimator."""

    def _fitted(
        self,
        rows: Any,
        labels: Any,
        version: str | None,
        *,
        as_places: bool = False,
    ) -> None:
        """Fits the model under one charge."""
        declared = self._rows
        target = None if declared.label is None else declared.target
        if declared.unit is None:
            warnings.warn(_ROWS_ARE_PERSONS, RowsArePersons, stacklevel=3)
        version = VERSIONS.of(rows, labels, version)
        with declared.session(rows, labels, version, as_places=as_places) as session:
            self.model_ = fit(
                session,
                self.recipe,
                declared.statement,
                label=target,
                epsilon=self.epsilon,
                rho=self.rho,
                delta=self.delta,
            )
        self.n_features_in_ = len(declared.names)
        self.feature_names_in_ = np.array(declared.names, dtype=object)

    def _frame(self, rows: Any) -> dict[str, list[Any]]:
        """Returns the rows as the fitted model reads them."""
        check_is_fitted(self)
        return self._rows.frame(rows)


class _Supervised(_Estimator):
    """An estimator that predicts a label."""

    def fit(self: Own, X: Any, y: Any, *, version: str | None = None, **unread: Any) -> Own:
        """Fits the recipe to the rows of ``X`` and their labels, and charges the ledger once.

        A second fit of the same two objects costs no budget, and so is one with a stated
        ``version`` of the data, in this process or another. Anything else is a new charge; rows are
        not compared.

        Raises:
            WrongUse: ``sample_weight``; a type of ``X`` or ``y`` that holds no declared value.
            BudgetExceeded: the account cannot pay; nothing was charged.
            Others as ``learning.fit``.
        """
        _require_no_more(unread)
        self._fitted(X, y, version, as_places=self._reads_places(y))
        return self

    def _reads_places(self, labels: Any) -> bool:
        """Whether the labels are indices of the classes."""
        return False


class Classifier(ClassifierMixin, _Supervised):  # type: ignore[misc]
    """A recipe that predicts a class, as a scikit-learn classifier.

    Each ``fit`` is charged ``epsilon``, ``rho`` and ``delta``. ``score`` reads private labels too:
    each call is charged ``score_epsilon``, and refused without it, before the first fit of a
    search. So all folds of ``cross_val_score`` and ``GridSearchCV`` are charged, or refused when
    the budget ends. Settings of the recipe are parameters such as ``recipe__depth``.

    Ensembles pass indices of the sorted classes (0, 1, ...) as labels, and expect indices back.
    Labels are read as indices if no declared class is a whole number. If classes are whole numbers,
    as those of ``sf.Integer(1, 5)``, ``encoded=True`` declares that labels are indices.

    >>> import tempfile
    >>> import sfumato as sf
    >>> from sfumato import learning as ln
    >>> folder = tempfile.TemporaryDirectory()
    >>> declared = Declared(folder.name + "/l.db", "clinic", {"age": sf.Integer(0, 99)},
    ...                     label=sf.Boolean(), budget=sf.Budget(2))
    >>> ages, ill = np.array([[20], [70]] * 1000), np.array([False, True] * 1000)
    >>> import warnings
    >>> warnings.simplefilter("ignore", RowsArePersons)  # each row here is another person
    >>> model = Classifier(ln.NaiveBayes(), declared, epsilon=1).fit(ages, ill)
    >>> model.predict([[18], [72]])
    array([False,  True])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        recipe: Recipe[Any],
        declared: Declared,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        score_epsilon: Number | None = None,
        encoded: bool = False,
    ) -> None:
        self.recipe = recipe
        self.declared = declared
        self.epsilon = epsilon
        self.rho = rho
        self.delta = delta
        self.score_epsilon = score_epsilon
        self.encoded = encoded

    @property
    def _rows(self) -> Declared:
        return self.declared.of_classes

    def _reads_places(self, labels: Any) -> bool:
        self.encoded_ = self.encoded or self._rows.reads_places(labels)
        return self.encoded_

    @property
    def classes_(self) -> Any:
        """The declared classes in ascending order; their indices if ``fit`` received indices."""
        check_is_fitted(self)
        classes = np.sort(np.array(self.declared.classes))
        return np.arange(len(classes)) if self.encoded_ else classes

    def predict(self, X: Any) -> Any:
        """Returns the most probable class of each row; costs no budget."""
        found = self.predict_proba(X).argmax(axis=1)
        return self.classes_[found]

    def predict_proba(self, X: Any) -> Floats:
        """Returns the probability of each class, in the order of ``classes_``; costs no budget."""
        frame = self._frame(X)
        shares: Floats = np.asarray(self.model_.predict_proba(frame))
        order = np.argsort(np.array(self.declared.classes), kind="stable")
        return shares[:, order]

    def _require_price(self) -> None:
        """Raises unless ``score_epsilon`` is set."""
        if self.score_epsilon is None:
            raise WrongUse(
                "A score without score_epsilon: it would read labels that nobody pays for.",
                remedy="Classifier(..., score_epsilon='0.1'); for public rows: "
                "sklearn.metrics.accuracy_score(y, model.predict(X)).",
            )

    @_Priced
    def score(self, X: Any, y: Any, *, version: str | None = None) -> float:
        """Returns a noisy share of right predictions, and charges ``score_epsilon``.

        Raises:
            WrongUse: there is no ``score_epsilon``.
            BudgetExceeded: the account cannot pay; nothing was charged.
        """
        check_is_fitted(self)
        declared = self._rows
        version = VERSIONS.of(X, y, version)
        with declared.session(X, y, version, as_places=self.encoded_) as session:
            counted = score(
                session,
                self.model_,
                declared.statement,
                label=declared.target,
                epsilon=self.score_epsilon,
            )
        return counted.accuracy


class Regressor(RegressorMixin, _Supervised):  # type: ignore[misc]
    """A recipe that predicts a number, as a scikit-learn regressor. ``score`` is refused.

    >>> import sfumato as sf
    >>> from sfumato import learning as ln
    >>> declared = Declared("l.db", "town", {"age": sf.Integer(0, 99)}, label=sf.Real(0, 100))
    >>> Regressor(ln.Ridge(), declared, rho="0.01").get_params()["recipe__alpha"]
    1.0
    """

    def __init__(
        self,
        recipe: Recipe[Any],
        declared: Declared,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
    ) -> None:
        self.recipe = recipe
        self.declared = declared
        self.epsilon = epsilon
        self.rho = rho
        self.delta = delta

    @property
    def _rows(self) -> Declared:
        return self.declared

    def predict(self, X: Any) -> Floats:
        """Returns the predicted number of each row; costs no budget."""
        frame = self._frame(X)
        found: Floats = np.asarray(self.model_.predict(frame))
        return found

    def _require_price(self) -> None:
        """Always raises: no charged score of a regression exists here."""
        raise WrongUse(
            "The score of a number on private rows.",
            remedy="For public rows: sklearn.metrics.r2_score(y, model.predict(X)).",
        )

    @_Priced
    def score(self, X: Any, y: Any) -> float:
        """Always refused, before the first fit of a search.

        Raises:
            WrongUse: always.
        """
        raise NotImplementedError("refused by _require_price")


class _Unsupervised(_Estimator):
    """An estimator without a label."""

    def __init__(
        self,
        recipe: Recipe[Any],
        declared: Declared,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
    ) -> None:
        self.recipe = recipe
        self.declared = declared
        self.epsilon = epsilon
        self.rho = rho
        self.delta = delta

    @property
    def _rows(self) -> Declared:
        if self.declared.label is not None:
            raise WrongUse("A label, which this estimator does not read.", remedy="Leave it out.")
        return self.declared

    def fit(self: Own, X: Any, y: Any = None, *, version: str | None = None, **unread: Any) -> Own:
        """Fits the recipe to the rows of ``X``, and charges the ledger once; ``y`` is not read.

        Raises:
            WrongUse: ``sample_weight``; a type of ``X`` that holds no declared value.
            BudgetExceeded: the account cannot pay; nothing was charged.
            Others as ``learning.fit``.
        """
        _require_no_more(unread)
        self._fitted(X, None, version)
        return self


class Clusterer(_Unsupervised):
    """``KMeans`` as a scikit-learn estimator.

    >>> import sfumato as sf
    >>> from sfumato import learning as ln
    >>> declared = Declared("l.db", "town", {"age": sf.Integer(0, 99)})
    >>> Clusterer(ln.KMeans(3), declared, epsilon=1).set_params(recipe__clusters=4).recipe
    KMeans(clusters=4)
    """

    @property
    def cluster_centers_(self) -> Floats:
        """The centers, in the units of the columns."""
        check_is_fitted(self)
        centers: Floats = self.model_.centers
        return centers

    def predict(self, X: Any) -> Integers:
        """Returns the index of the nearest center of each row; -1 where a number is missing.
        Free.
        """
        frame = self._frame(X)
        found: Integers = self.model_.predict(frame)
        return found

    def fit_predict(self, X: Any, y: Any = None) -> Integers:
        """Fits, then predicts the same rows."""
        return self.fit(X, y).predict(X)


class Projection(TransformerMixin, _Unsupervised):  # type: ignore[misc]
    """``PCA`` as a scikit-learn transformer.

    >>> import sfumato as sf
    >>> from sfumato import learning as ln
    >>> declared = Declared("l.db", "town", {"age": sf.Integer(0, 99), "pay": sf.Real(0, 9)})
    >>> Projection(ln.PCA(1), declared, rho="0.01").get_params()["recipe__components"]
    1
    """

    @property
    def components_(self) -> Floats:
        """The directions, in columns scaled to -1 to 1 between the declared bounds."""
        check_is_fitted(self)
        axes: Floats = self.model_.axes
        return axes

    def transform(self, X: Any) -> Floats:
        """Returns the coordinates of each row; NaN where a number is missing. Free."""
        frame = self._frame(X)
        found: Floats = self.model_.transform(frame)
        return found

    def inverse_transform(self, X: Any) -> Floats:
        """Converts coordinates back into rows in the units of the columns; costs no budget."""
        check_is_fitted(self)
        found: Floats = self.model_.inverse(np.asarray(X))
        return found


def private_score(model: Any, X: Any, y: Any) -> float:
    """A scorer (``scoring=``): the charged score of a ``Classifier``, or of a pipeline that ends in
    one.

    ``scoring=None`` has the same meaning for them. A scikit-learn model around an estimator would
    count exact labels, which nobody pays for: it is refused.

    Raises:
        WrongUse: another model; no ``score_epsilon``.

    >>> private_score(object(), [], [])
    Traceback (most recent call last):
    sfumato.errors.WrongUse: The private score of an object.
    """
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not isinstance(last, Classifier):
        raise WrongUse(
            f"The private score of an {type(last).__name__}.",
            allowed="a Classifier, or a pipeline that ends in one",
            remedy="Score each Classifier by itself; for public rows: scoring='accuracy'.",
        )
    last._require_price()
    counted: float = model.score(X, y)
    return counted


def _require_no_more(unread: dict[str, Any]) -> None:
    """Raises WrongUse for parameters of ``fit`` that are not supported."""
    if unread:
        raise WrongUse(
            f"fit with {shown(min(unread))}.",
            allowed="X, y, version=",
            remedy="A weight makes copies of a person, which no price covers.",
        )
