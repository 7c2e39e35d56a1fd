# SPDX-License-Identifier: Apache-2.0
"""Recipes as estimators of scikit-learn, whose every fit and score is charged to a ledger.

Needs scikit-learn (the extra ``sklearn``); no other module imports it. ``Classifier`` and
``Regressor`` predict a label, ``Clusterer`` and ``Projection`` describe rows. ``Declared`` says
which ledger pays and how the columns are declared; ``Folds`` divides rows for a cross-validation.
"""

import hashlib
import uuid
import weakref
from abc import abstractmethod
from collections.abc import Iterator
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
from sfumato.learning.recipe import Recipe
from sfumato.learning.score import score
from sfumato.noise import Integers
from sfumato.query.cost import Cost

__all__ = ["Classifier", "Clusterer", "Declared", "Folds", "Projection", "Regressor"]

Own = TypeVar("Own", bound="_Estimator")
# What a setting of the recipe is called by set_params and by a grid.
_OF_RECIPE = "recipe__"


class _Versions:
    """The version of the data that a pair of objects is, for as long as both exist.

    Rows are never compared: whether two arrays are equal is a fact about private data, and a charge
    that depends on it would tell it.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[_Watched, str]] = []

    def of(self, rows: Any, labels: Any, stated: str | None) -> str:
        """The version of rows and labels: the stated one, or one that no other pair has.

        Raises:
            WrongUse: other objects had the stated version before, and still exist.
        """
        self.pairs = [pair for pair in self.pairs if pair[0].exists]
        for watched, version in self.pairs:
            if watched.is_of(rows, labels):
                if stated in (None, version):
                    return version
            elif version == stated:
                raise WrongUse(
                    f"version={shown(stated)} of other rows than before.",
                    remedy="A version names one set of rows. Leave it out in a cross-validation.",
                )
        found = stated or uuid.uuid4().hex
        try:
            self.pairs.append((_Watched(rows, labels), found))
        except TypeError:
            # a list cannot be watched: it is another one each time
            return found
        return found


class _Watched:
    """Rows and labels that are not kept alive."""

    def __init__(self, rows: Any, labels: Any) -> None:
        self.rows = weakref.ref(rows)
        self.labels = None if labels is None else weakref.ref(labels)

    @property
    def exists(self) -> bool:
        """Whether both still exist."""
        return self.rows() is not None and (self.labels is None or self.labels() is not None)

    def is_of(self, rows: Any, labels: Any) -> bool:
        """Whether these are the objects."""
        watched = None if self.labels is None else self.labels()
        return self.rows() is rows and watched is labels


_VERSIONS = _Versions()


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """A recipe with what it may cost, and the ledger that pays."""

    recipe: Recipe[Any]
    declared: Declared
    epsilon: Number | None
    rho: Number | None
    delta: Number | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """The parameters; with ``deep`` also the settings of the recipe, ``recipe__depth``."""
        found: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for each in fields(self.recipe):  # type: ignore[arg-type]
                found[_OF_RECIPE + each.name] = getattr(self.recipe, each.name)
        return found

    def set_params(self: Own, **params: Any) -> Own:
        """Sets parameters, and settings of the recipe."""
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
        """What the fit cost."""
        check_is_fitted(self)
        cost: Cost = self.model_.cost
        return cost

    @property
    @abstractmethod
    def _rows(self) -> Declared:
        """The declarations, checked for this kind of estimator."""

    def _fitted(self, rows: Any, labels: Any, version: str | None) -> None:
        """Fits the model under one charge."""
        declared = self._rows
        target = None if declared.label is None else declared.target
        with declared.session(rows, labels, _VERSIONS.of(rows, labels, version)) as session:
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
        """The rows as the fitted model reads them."""
        check_is_fitted(self)
        return self._rows.frame(rows)


class _Supervised(_Estimator):
    """An estimator of a label."""

    def fit(self: Own, X: Any, y: Any, *, version: str | None = None) -> Own:
        """Fits the recipe to the rows of ``X`` and their labels, and charges the ledger once.

        The same two objects again are free, and so is a stated ``version`` of the data, in this
        process or another. Anything else is a new charge; rows are not compared.

        Raises:
            BudgetExceeded: the account cannot pay; nothing was charged.
            Others as ``learning.fit``.
        """
        self._fitted(X, y, version)
        return self


class Classifier(ClassifierMixin, _Supervised):  # type: ignore[misc]
    """A recipe that predicts a class, as a classifier of scikit-learn.

    ``fit`` is charged what ``epsilon``, ``rho`` and ``delta`` say. ``score`` reads private labels
    too: each call is charged ``score_epsilon``, and refused without it. So all folds of
    ``cross_val_score`` and ``GridSearchCV`` are charged, or refused when the budget ends. Settings
    of the recipe are parameters: ``recipe__depth``.

    >>> import tempfile
    >>> import sfumato as sf
    >>> from sfumato import learning as ln
    >>> folder = tempfile.TemporaryDirectory()
    >>> declared = Declared(folder.name + "/l.db", "clinic", {"age": sf.Integer(0, 99)},
    ...                     label=sf.Boolean(), budget=sf.Budget(2))
    >>> ages, ill = np.array([[20], [70]] * 1000), np.array([False, True] * 1000)
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
    ) -> None:
        self.recipe = recipe
        self.declared = declared
        self.epsilon = epsilon
        self.rho = rho
        self.delta = delta
        self.score_epsilon = score_epsilon

    @property
    def _rows(self) -> Declared:
        return self.declared.of_classes

    @property
    def classes_(self) -> Any:
        """The declared classes, in ascending order."""
        check_is_fitted(self)
        return np.sort(np.array(self.declared.classes))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row; free."""
        found = self.predict_proba(X).argmax(axis=1)
        return self.classes_[found]

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of ``classes_``; free."""
        frame = self._frame(X)
        shares: Floats = np.asarray(self.model_.predict_proba(frame))
        order = np.argsort(np.array(self.declared.classes), kind="stable")
        return shares[:, order]

    def score(self, X: Any, y: Any, *, version: str | None = None) -> float:
        """A noisy share of right predictions, charged ``score_epsilon``.

        Raises:
            WrongUse: there is no ``score_epsilon``.
            BudgetExceeded: the account cannot pay; nothing was charged.
        """
        check_is_fitted(self)
        if self.score_epsilon is None:
            raise WrongUse(
                "A score without score_epsilon: it would read labels that nobody pays for.",
                remedy="Classifier(..., score_epsilon='0.1'); for public rows: "
                "sklearn.metrics.accuracy_score(y, model.predict(X)).",
            )
        declared = self._rows
        with declared.session(X, y, _VERSIONS.of(X, y, version)) as session:
            counted = score(
                session,
                self.model_,
                declared.statement,
                label=declared.target,
                epsilon=self.score_epsilon,
            )
        return counted.accuracy


class Regressor(RegressorMixin, _Supervised):  # type: ignore[misc]
    """A recipe that predicts a number, as a regressor of scikit-learn. ``score`` is refused.

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
        """The predicted number of each row; free."""
        frame = self._frame(X)
        found: Floats = np.asarray(self.model_.predict(frame))
        return found

    def score(self, X: Any, y: Any) -> float:
        """Refused: nothing here measures the error of a number under a charge.

        Raises:
            WrongUse: always.
        """
        raise WrongUse(
            "The score of a number on private rows.",
            remedy="For public rows: sklearn.metrics.r2_score(y, model.predict(X)).",
        )


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

    def fit(self: Own, X: Any, y: Any = None, *, version: str | None = None) -> Own:
        """Fits the recipe to the rows of ``X``, and charges the ledger once; ``y`` is not read.

        Raises:
            BudgetExceeded: the account cannot pay; nothing was charged.
            Others as ``learning.fit``.
        """
        self._fitted(X, None, version)
        return self


class Clusterer(_Unsupervised):
    """``KMeans`` as an estimator of scikit-learn.

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
        """The place of the nearest center to each row; -1 where a number is missing. Free."""
        frame = self._frame(X)
        found: Integers = self.model_.predict(frame)
        return found

    def fit_predict(self, X: Any, y: Any = None) -> Integers:
        """Fits, and predicts the same rows."""
        return self.fit(X, y).predict(X)


class Projection(TransformerMixin, _Unsupervised):  # type: ignore[misc]
    """``PCA`` as a transformer of scikit-learn.

    >>> import sfumato as sf
    >>> from sfumato import learning as ln
    >>> declared = Declared("l.db", "town", {"age": sf.Integer(0, 99), "pay": sf.Real(0, 9)})
    >>> Projection(ln.PCA(1), declared, rho="0.01").get_params()["recipe__components"]
    1
    """

    @property
    def components_(self) -> Floats:
        """The directions, in the box from -1 to 1 of the declared bounds."""
        check_is_fitted(self)
        axes: Floats = self.model_.axes
        return axes

    def transform(self, X: Any) -> Floats:
        """The coordinates of each row; NaN where a number is missing. Free."""
        frame = self._frame(X)
        found: Floats = self.model_.transform(frame)
        return found

    def inverse_transform(self, X: Any) -> Floats:
        """Rows of the columns' units at some coordinates; free."""
        check_is_fitted(self)
        found: Floats = self.model_.inverse(np.asarray(X))
        return found


class Folds:
    """Divides rows into folds by a hash of each row's unit, or of its features without one.

    What one person's rows are decides their fold, and no other row's. So each training set differs
    by that person alone, and the charges of all folds add up to a guarantee. In ``StratifiedKFold``
    and ``KFold`` one row more moves others to other folds.

    >>> import sfumato as sf
    >>> folds = Folds(Declared("l.db", "town", {"age": sf.Integer(0, 99)}), 5)
    >>> sum(len(test) for _, test in folds.split(np.arange(100)[:, np.newaxis]))
    100
    """

    def __init__(self, declared: Declared, n_splits: int = 5) -> None:
        if type(n_splits) is not int or not 2 <= n_splits <= 100:
            raise WrongUse(f"n_splits={shown(n_splits)}.", allowed="a whole number from 2 to 100")
        self.declared = declared
        self.n_splits = n_splits

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
    ) -> Iterator[tuple[Integers, Integers]]:
        """For each fold the places of the rows that are kept, and of those that are held out."""
        fold = np.array([self._fold(row) for row in zip(*self._read(X), strict=True)])
        for held in range(self.n_splits):
            yield np.flatnonzero(fold != held), np.flatnonzero(fold == held)

    def _read(self, rows: Any) -> list[Any]:
        """The columns that decide."""
        if self.declared.unit is None:
            return list(self.declared.frame(rows).values())
        return list(self.declared.owners(rows).values())

    def _fold(self, row: tuple[Any, ...]) -> int:
        """The fold of a row."""
        digest = hashlib.blake2b(repr(row).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.n_splits
