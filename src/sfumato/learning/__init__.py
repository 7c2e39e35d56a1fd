# SPDX-License-Identifier: Apache-2.0
"""Learning: models fitted to private rows under one charge, with exact noise.

May import ``synopsis``, ``query`` and every room below them but ``engines`` and ``ledger``; reaches
private data through tasks alone. Begin with ``fit``. ``examples`` has the sums over units and their
proof, ``order`` what a step reads, ``run`` the checkpoints, ``budget`` the noise; ``descent`` and
``model`` compute with released numbers.
"""

from sfumato.learning.additive import Additive, LogisticRegression
from sfumato.learning.clusters import Clusters
from sfumato.learning.components import Components
from sfumato.learning.decision_tree import DecisionTree
from sfumato.learning.fit import fit, preview, resume
from sfumato.learning.fit_preview import Preview
from sfumato.learning.frontier import Frontier, Point, frontier
from sfumato.learning.kmeans import KMeans
from sfumato.learning.load import load
from sfumato.learning.model import Model
from sfumato.learning.naive_bayes import NaiveBayes
from sfumato.learning.order import Fixed, FullBatch, Poisson
from sfumato.learning.pca import PCA
from sfumato.learning.recipe import Recipe
from sfumato.learning.ridge import Ridge
from sfumato.learning.score import Score, score
from sfumato.learning.tree import Tree

__all__ = [
    "PCA",
    "Additive",
    "Clusters",
    "Components",
    "DecisionTree",
    "Fixed",
    "Frontier",
    "FullBatch",
    "KMeans",
    "LogisticRegression",
    "Model",
    "NaiveBayes",
    "Point",
    "Poisson",
    "Preview",
    "Recipe",
    "Ridge",
    "Score",
    "Tree",
    "fit",
    "frontier",
    "load",
    "preview",
    "resume",
    "score",
]
