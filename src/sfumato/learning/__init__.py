# SPDX-License-Identifier: Apache-2.0
"""Private machine learning: models fitted to private rows, each under one charge.

Begin with ``fit`` (then ``score``, ``choose``, ``tune``). Fitted models predict from released
numbers, at no cost.

How a fit works: a ``Recipe`` (``recipe``) turns the rows of a SELECT (``examples_of``) into a task
or a series that the session runs. ``examples`` is the statistic of gradient models with its proof;
``order`` samples units for a step, ``run`` stores checkpoints, ``budget`` finds the noise.
``descent`` and ``model`` compute with released numbers only. This room may import ``synopsis``,
``query`` and every room below them except ``engines`` and ``ledger``; it reads private data through
tasks only.
"""

from sfumato.learning.additive import Additive, LogisticRegression
from sfumato.learning.bag import Bag
from sfumato.learning.choose import Chosen, choose
from sfumato.learning.clusters import Clusters
from sfumato.learning.components import Components
from sfumato.learning.decision_tree import DecisionTree
from sfumato.learning.fit import fit, preview, resume
from sfumato.learning.fit_preview import Preview
from sfumato.learning.forest import Forest
from sfumato.learning.frontier import Frontier, Point, frontier
from sfumato.learning.kmeans import KMeans
from sfumato.learning.load import load
from sfumato.learning.matrix_noise import MatrixNoise
from sfumato.learning.model import Model
from sfumato.learning.naive_bayes import NaiveBayes
from sfumato.learning.order import Cyclic, Fixed, FullBatch, Poisson
from sfumato.learning.pca import PCA
from sfumato.learning.private_frontier import PrivateFrontier, private_frontier
from sfumato.learning.recipe import Recipe
from sfumato.learning.ridge import Ridge
from sfumato.learning.score import Score, score
from sfumato.learning.score_within import score_within
from sfumato.learning.tree import Tree
from sfumato.learning.trees import Trees
from sfumato.learning.tune import Tuned, preview_tune, tune
from sfumato.learning.tune_preview import TunePreview

__all__ = [
    "PCA",
    "Additive",
    "Bag",
    "Chosen",
    "Clusters",
    "Components",
    "Cyclic",
    "DecisionTree",
    "Fixed",
    "Forest",
    "Frontier",
    "FullBatch",
    "KMeans",
    "LogisticRegression",
    "MatrixNoise",
    "Model",
    "NaiveBayes",
    "Point",
    "Poisson",
    "Preview",
    "PrivateFrontier",
    "Recipe",
    "Ridge",
    "Score",
    "Tree",
    "Trees",
    "TunePreview",
    "Tuned",
    "choose",
    "fit",
    "frontier",
    "load",
    "preview",
    "preview_tune",
    "private_frontier",
    "resume",
    "score",
    "score_within",
    "tune",
]
