# SPDX-License-Identifier: Apache-2.0
"""Mining: words, sets of items and sequences that many people have, and mean pictures.

Begin with ``mine``, which asks a recipe of the rows of a SELECT: ``Terms``, ``Itemsets``,
``Paths``, ``Means``. ``unit_keys``, ``baskets`` and ``group_sums`` are the statistics, with proofs.
This room may import ``query`` and every room below; it reads private data through tasks only.
"""

from sfumato.mining.found import Found as Found
from sfumato.mining.found import Table as Table
from sfumato.mining.itemsets import FoundItemsets as FoundItemsets
from sfumato.mining.itemsets import Itemsets as Itemsets
from sfumato.mining.means import FoundMeans as FoundMeans
from sfumato.mining.means import Means as Means
from sfumato.mining.mine import Preview as Preview
from sfumato.mining.mine import load as load
from sfumato.mining.mine import mine as mine
from sfumato.mining.mine import preview as preview
from sfumato.mining.paths import FoundPaths as FoundPaths
from sfumato.mining.paths import Paths as Paths
from sfumato.mining.recipe import Recipe as Recipe
from sfumato.mining.terms import FoundTerms as FoundTerms
from sfumato.mining.terms import Terms as Terms

__all__ = [
    "Found",
    "FoundItemsets",
    "FoundMeans",
    "FoundPaths",
    "FoundTerms",
    "Itemsets",
    "Means",
    "Paths",
    "Preview",
    "Recipe",
    "Table",
    "Terms",
    "load",
    "mine",
    "preview",
]
