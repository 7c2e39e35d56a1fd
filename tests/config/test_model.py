# SPDX-License-Identifier: Apache-2.0
"""``[models.NAME]`` of a file."""

from fractions import Fraction

import pytest

from sfumato import learning as ln
from sfumato.config.model import RECIPES, read_model
from sfumato.errors import InvalidConfig, UnknownName

DATA = 'data = "SELECT a, b FROM t"\nlabel = "b"\n'
FULL = """recipe = "Additive"
steps = 9
bins = 8
checkpoints = 2
edges = {a = [1, 2.5]}
order = {poisson = "0.1"}
"""


def written(tmp_path, text):
    path = tmp_path / "sfumato.toml"
    path.write_text(f"[models.m]\n{text}\n")
    return str(path)


def read(tmp_path, text):
    return read_model(written(tmp_path, DATA + text), "m")


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ('recipe = "Additive"', ln.Additive()),
        (
            FULL,
            ln.Additive({"a": [1, 2.5]}, 8, 9, ln.Poisson("0.1"), 2),
        ),
        (
            'recipe = "LogisticRegression"\norder = {fixed = 5, population = 50}',
            ln.LogisticRegression(order=ln.Fixed(5, 50)),
        ),
        ('recipe = "LogisticRegression"\norder = "full"', ln.LogisticRegression()),
        ('recipe = "Additive"\nbag = {buckets = 64}', ln.Additive(bag=ln.Bag(64))),
        ('recipe = "Ridge"\nalpha = 3', ln.Ridge(3)),
        ('recipe = "NaiveBayes"\nbins = 4', ln.NaiveBayes(bins=4)),
        ('recipe = "DecisionTree"\ndepth = 3', ln.DecisionTree(depth=3)),
        ('recipe = "Forest"', ln.Forest()),
        ('recipe = "KMeans"\nclusters = 3', ln.KMeans(3)),
        ('recipe = "PCA"\ncomponents = 2', ln.PCA(2)),
    ],
)
def test_a_recipe_has_its_settings(tmp_path, text, recipe):
    assert read(tmp_path, text).recipe == recipe


def test_every_recipe_of_learning_can_be_named():
    named = {name for name in ln.__all__ if isinstance(getattr(ln, name), type)}
    recipes = {name for name in named if issubclass(getattr(ln, name), ln.Recipe)} - {"Recipe"}
    assert set(RECIPES) == recipes


def test_a_cost_that_is_given_replaces_that_of_the_file(tmp_path):
    found = read(tmp_path, 'recipe = "Ridge"\nepsilon = "1"\ndelta = "1e-6"')
    free = {"epsilon": None, "delta": None, "rho": None}
    assert found.asked(free) == {"label": "b", "epsilon": "1", "delta": "1e-6"}
    assert found.asked({**free, "rho": "2"}) == {"label": "b", "rho": "2"}
    assert found.data == "SELECT a, b FROM t"
    assert Fraction(found.cost(free)["epsilon"]) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "recipe = None"),
        ("recipe = 3", "recipe = 3"),
        ('recipe = "additive"', "recipe = 'additive'"),
        ('recipe = "Network"', "A network is code"),
        ('recipe = "Ridge"\nstep = 3', "unknown key 'step'"),
        ('recipe = "Ridge"\nbins = 3', "unknown key 'bins'"),
        ('recipe = "KMeans"', "settings are missing.*Write clusters, too"),
        ('recipe = "LogisticRegresion"', "Did you mean LogisticRegression"),
        ('recipe = "Additive"\nbag = {bucket = 8}', "bag: unknown key 'bucket'"),
        ('recipe = "KMeans"\nclusters = "8"', "clusters='8'"),
        ('recipe = "Additive"\nsteps = 0', "steps=0"),
        ('recipe = "Additive"\nsteps = true', "steps=True"),
        ('recipe = "Additive"\nedges = [1]', "edges"),
        ('recipe = "Additive"\nedges = {a = [nan]}', "edges"),
        ('recipe = "Additive"\nedges = {a = [true]}', "edges"),
        ('recipe = "Additive"\norder = "shuffled"', "order"),
        ('recipe = "Additive"\norder = {poisson = 0}', "rate=0"),
        ('recipe = "Additive"\norder = {poisson = "0.1", more = 1}', "order"),
        ('recipe = "Additive"\norder = {fixed = 5}', "order"),
    ],
)
def test_what_means_nothing_is_refused(tmp_path, text, words):
    with pytest.raises(InvalidConfig, match="(?s)" + words.replace("(", ".")):
        read(tmp_path, text)


@pytest.mark.parametrize("text", ['recipe = "PCA"\ncomponents = 1', 'recipe = "Ridge"\ndata = 3'])
def test_rows_must_be_stated(tmp_path, text):
    with pytest.raises(InvalidConfig, match=r"models\.m: data "):
        read_model(written(tmp_path, text), "m")


def test_an_unknown_model_lists_those_that_exist(tmp_path):
    with pytest.raises(UnknownName, match="other"):
        read_model(written(tmp_path, DATA), "other")
    (tmp_path / "sfumato.toml").write_text('dataset = "d"')
    with pytest.raises(InvalidConfig, match="models"):
        read_model(str(tmp_path / "sfumato.toml"), "m")
