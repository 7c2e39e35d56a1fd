# SPDX-License-Identifier: Apache-2.0
"""The order of rows in plain Python: by the hash of a key, of what a row holds, and of its unit."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from sfumato.engines.base import Codes, UnitRows, nulls_first
from sfumato.engines.reference_rows import Row
from sfumato.plan.rows import MISSING, BoundedRows


def hashed(*parts: int | str | None) -> str:
    """md5 of the parts' texts, which every engine computes alike."""
    text = "|".join("N" if part is None else str(part) for part in parts)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def unit_rows(plan: BoundedRows, found: Iterable[Row], key: str) -> UnitRows:
    """The first rows of each unit, and the units by the hash of their names."""
    held: dict[str, list[Codes]] = defaultdict(list)
    for row in found:
        held[row.unit or ""].append(tuple(row.code(each.expression) for each in plan.rows.values))
    if plan.unit is None:
        blocks = [[codes] for codes in _ordered(key, None, held[""])]
    else:
        units = sorted(held, key=lambda unit: (hashed(key, unit), unit))
        blocks = [_ordered(key, unit, held[unit])[: plan.most] for unit in units]
    codes = [
        [MISSING if code is None else int(code) for code in row]
        for block in blocks
        for row in block
    ]
    starts = np.cumsum([0, *map(len, blocks)])
    return UnitRows(np.array(codes, np.int64).reshape(len(codes), len(plan.rows.values)), starts)


def _ordered(key: str, unit: str | None, found: Iterable[Codes]) -> list[Codes]:
    """Rows by the hash of what they hold, of their unit, and of their number among equal ones."""
    seen, placed = Counter[Codes](), []
    whose = [] if unit is None else [unit]
    for codes in found:
        seen[codes] += 1
        order = (
            hashed(key, *codes, *whose, seen[codes]),
            [nulls_first(code) for code in codes],
            seen[codes],
        )
        placed.append((order, codes))
    return [codes for _, codes in sorted(placed, key=lambda each: each[0])]
