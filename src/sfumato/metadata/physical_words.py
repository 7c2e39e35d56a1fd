# SPDX-License-Identifier: Apache-2.0
"""Whether a stored column can hold declared values: decided by its physical type, never by rows.

A stored boolean column that is declared as ``Category("no", "yes")`` can hold no declared value,
whatever its rows are. A column of strings, or of floats, may: which values it holds is private.
"""

import re
from collections.abc import Iterable

from sfumato.metadata.column import Boolean, Category, ColumnType

# The texts of the values of a family of physical types, where few texts are possible.
_TEXTS = {"boolean": "true|false", "whole": "0|-?[1-9][0-9]*"}


def can_hold(kind: ColumnType, family: str) -> bool:
    """Whether data that is stored with a physical type of this family can have a value of the
    declared column type.

    Only the families ``boolean`` and ``whole`` (integers), declared as strings, are ever refused.

    >>> can_hold(Category("no", "yes"), "whole"), can_hold(Category("no", "1"), "whole")
    (False, True)
    >>> can_hold(Category("no", "yes"), "boolean"), can_hold(Category("no", "yes"), "float")
    (False, True)
    """
    if not isinstance(kind, Category | Boolean):
        return True
    return can_hold_word((word for word, _ in kind.texts()), family)


def can_hold_word(words: Iterable[str], family: str) -> bool:
    """Whether at least one of the declared strings can be the text of a value whose physical type
    is of this family.

    >>> can_hold_word(["male", "2"], "whole"), can_hold_word(["02", "2.0"], "whole")
    (True, False)
    """
    pattern = _TEXTS.get(family)
    if pattern is None:
        return True
    return any(re.fullmatch(pattern, word, re.ASCII) for word in words)
