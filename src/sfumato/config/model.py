# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[models.<name>]`` of a ``sfumato.toml``, for ``fit`` and ``frontier``."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sfumato.config.cost import COST, cost_of
from sfumato.config.named_section import read_section
from sfumato.config.near_names import near
from sfumato.config.section import Key, as_is, placed, read, settings_missing, stated, text
from sfumato.errors import InvalidConfig, SfumatoError, UnknownName, shown
from sfumato.learning.additive import Additive, LogisticRegression
from sfumato.learning.bag import Bag
from sfumato.learning.decision_tree import DecisionTree
from sfumato.learning.forest import Forest
from sfumato.learning.kmeans import KMeans
from sfumato.learning.naive_bayes import NaiveBayes
from sfumato.learning.order import Fixed, FullBatch, Order, Poisson
from sfumato.learning.pca import PCA
from sfumato.learning.recipe import Recipe
from sfumato.learning.ridge import Ridge

# The recipes that a file can name: the names of their classes.
RECIPES: Mapping[str, type[Recipe[Any]]] = {
    kind.__name__: kind
    for kind in (
        Additive,
        LogisticRegression,
        Ridge,
        NaiveBayes,
        DecisionTree,
        Forest,
        KMeans,
        PCA,
    )
}
MODEL = (
    Key("recipe", text, '"Additive"', "the class of the model"),
    Key("data", text, '"SELECT age, income FROM people"', "the SELECT of its rows"),
    Key("label", text, '"income"', "the column that is predicted, if any", None),
    *COST,
    Key("public", text, '"survey.csv"', "public rows, for sfumato frontier", None),
    Key("epsilons", as_is, '["0.1", 1]', "the epsilons that sfumato frontier compares", None),
    Key("folds", as_is, "5", "the folds of sfumato frontier", None),
)
_ORDERS = '{poisson = "0.01"}, {fixed = 100, population = 50000}, or "full"'


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The declaration of a model to fit: its recipe with settings, and the values of its TOML
    keys.
    """

    name: str
    recipe: Recipe[Any]
    form: Mapping[str, Any]

    @property
    def data(self) -> str:
        """The SELECT statement that reads the model's rows."""
        return str(self.form["data"])

    @property
    def label(self) -> str | None:
        """The name of the column to predict; None for models without a label."""
        return self.form.get("label")

    def cost(self, given: Mapping[str, str | None]) -> dict[str, Any]:
        """Returns the cost arguments of a model fit: those in ``given``, else those of the file."""
        return cost_of(self.form, given)

    def asked(self, given: Mapping[str, str | None]) -> dict[str, Any]:
        """Returns the keyword arguments for ``learning.fit``; those in ``given`` replace the
        file's.
        """
        return {"label": self.label, **self.cost(given)}


def read_model(path: str, name: str) -> ModelConfig:
    """Reads the model with this name from a file.

    Raises:
        UnknownName: the file has no such model.
        InvalidConfig: a key is missing or unknown, or its value has the wrong form; the recipe has
            no name in files.
    """
    declared = read_section(path, "models")
    if name not in declared:
        raise UnknownName(f"No model {shown(name)}.", allowed=", ".join(declared) or "none")
    recipe, values = _read_recipe(f"models.{name}", declared[name], MODEL)
    return ModelConfig(name, recipe, values)


def recipe_of(where: str, form: Mapping[str, Any]) -> Recipe[Any]:
    """Returns the model recipe that a TOML table names, for one with only a name and settings.

    Raises:
        InvalidConfig: as ``read_model``.

    >>> recipe_of("the model", {"recipe": "Ridge", "alpha": 2})
    Ridge(alpha=2)
    """
    recipe, _ = _read_recipe(where, form, MODEL[:1])
    return recipe


def _read_recipe(
    where: str,
    form: Mapping[str, Any],
    keys: tuple[Key, ...],
) -> tuple[Recipe[Any], Mapping[str, Any]]:
    """The recipe of a form with its settings, and the values of all keys that are stated."""
    kind = _kind(where, form)
    settings = tuple(
        Key(field.name, as_is, "...", "a setting of its recipe", None)
        for field in fields(kind)  # type: ignore[arg-type]
    )
    values = stated(read(form, where, (*keys, *settings)))
    given = {
        key.name: _setting(where, key.name, values[key.name])
        for key in settings
        if key.name in values
    }
    return _make_recipe(where, kind, given), values


def _kind(where: str, form: Mapping[str, Any]) -> type[Recipe[Any]]:
    """The class of the recipe that a section names."""
    named = form.get("recipe")
    if isinstance(named, str) and named.lower() in ("network", "torch", "torch.network"):
        raise InvalidConfig(
            f'{where}: recipe = "{named}". A network is code, and a file holds none.',
            allowed=", ".join(RECIPES),
            remedy="Fit it in Python: ln.fit(sf.load(), torch.Network(module, ...), ...); "
            "see docs/networks.md.",
        )
    if not isinstance(named, str) or named not in RECIPES:
        raise InvalidConfig(
            f"{where}: recipe = {shown(named)}.",
            allowed=", ".join(RECIPES),
            remedy=near(named, RECIPES) or 'recipe = "Additive"',
        )
    return RECIPES[named]


def _make_recipe(
    where: str,
    kind: type[Recipe[Any]],
    given: Mapping[str, Any],
) -> Recipe[Any]:
    """A recipe with its settings, which its class checks."""
    try:
        with placed(where):
            return kind(**given)
    except TypeError:
        raise settings_missing(where, kind, given) from None


def _setting(where: str, key: str, value: Any) -> Any:
    """A setting, converted to the type that its recipe takes."""
    if key == "order":
        return _order(where, value)
    if key == "edges":
        return _edges(where, value)
    if key == "bag":
        return _bag(where, value)
    return value


def _edges(where: str, value: object) -> Mapping[str, Sequence[float]]:
    """The edges of bins by column."""
    if isinstance(value, Mapping) and all(map(_is_numbers, value.values())):
        return value
    raise InvalidConfig(f"{where}: edges.", allowed="edges = {age = [25, 40, 65]}")


def _bag(where: str, value: object) -> Bag:
    """How texts are read."""
    keys = (Key("buckets", as_is, "4096", "", None), Key("most", as_is, "64", "", None))
    given = stated(read(value, f"{where}.bag", keys))
    with placed(where):
        return Bag(**given)


def _is_numbers(value: object) -> bool:
    """Whether a value is a list of finite numbers."""
    return isinstance(value, list) and all(map(_is_number, value))


def _is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _order(where: str, value: object) -> Order:
    """The sampling order of a training: what each of its steps reads."""
    match value:
        case "full":
            return FullBatch()
        case {"poisson": rate, **more} if not more:
            return _sampling_order(where, Poisson, rate)
        case {"fixed": int(size), "population": int(population), **more} if not more:
            return _sampling_order(where, Fixed, size, population)
        case _:
            raise InvalidConfig(f"{where}: order.", allowed=_ORDERS)


def _sampling_order(where: str, kind: type[Poisson] | type[Fixed], *sizes: Any) -> Order:
    """A sampling order; its class checks its numbers."""
    try:
        return kind(*sizes)
    except SfumatoError as error:
        raise InvalidConfig(f"{where}: order: {error.problem}", allowed=_ORDERS) from None
