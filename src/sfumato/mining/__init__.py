# SPDX-License-Identifier: Apache-2.0
"""Mining: words, words in a row, sets of items and sequences that many people have, in one charge.

Begin with ``mine``, which asks a recipe of the rows of a SELECT: ``Terms``, ``Itemsets``, ``Paths``.
``unit_keys`` and ``baskets`` are the statistics, with proofs. This room may import ``query`` and
every room below; it reads private data through tasks only.
"""

from sfumato.mining.found import Found as Found
from sfumato.mining.found import Table as Table
from sfumato.mining.itemsets import FoundItemsets as FoundItemsets
from sfumato.mining.itemsets import Itemsets as Itemsets
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
    "FoundPaths",
    "FoundTerms",
    "Itemsets",
    "Paths",
    "Preview",
    "Recipe",
    "Table",
    "Terms",
    "load",
    "mine",
    "preview",
]
