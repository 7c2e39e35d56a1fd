# SPDX-License-Identifier: Apache-2.0
"""The sampling orders in plain Python, for the reference engine: hashes of rows and groups."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from itertools import chain

import numpy as np

from sfumato.engines.base import Codes, UnitRows, nulls_first
from sfumato.engines.reference_rows import Row
from sfumato.engines.row_tokens import TokenReader
from sfumato.engines.value_codes import WHOLE_PATTERN
from sfumato.metadata.column import Array, Text
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.plan.value import Value

_PRIME = 2**31 - 1


def hashed(*parts: int | str | None) -> str:
    """Returns the md5 (in hexadecimal) of the parts as strings, joined by bars. All engines sort
    units and rows by such hashes.

    >>> hashed("key", 1, None)
    '67de8ff634578ea930c6d327312d29a7'
    """
    words = ["N" if part is None else str(part) for part in parts]
    return hashlib.md5("|".join(words).encode(), usedforsecurity=False).hexdigest()


def unit_rows(
    plan: BoundedRows,
    relation_rows: Iterable[Row],
    key: str,
) -> UnitRows:
    """Returns the first ``plan.most`` rows of each unit in a pseudorandom order by ``key``; units
    are sorted by the hash of their names.
    """
    by_unit: dict[str, list[Codes]] = defaultdict(list)
    for row in relation_rows:
        codes = tuple(_code(row, value) for value in plan.rows.values)
        by_unit[row.unit or ""].append(codes)
    names = []
    if plan.unit is None:
        blocks = [[codes] for codes in _units_of_one_row(plan, key, by_unit[""])]
    else:
        units = sorted(by_unit, key=lambda unit: (hashed(key, unit), unit))
        blocks = [_ordered(key, unit, by_unit[unit])[: plan.most] for unit in units]
        if plan.naming:
            names = [hashed(plan.naming, unit).encode() for unit in units]
    starts = np.cumsum([0, *map(len, blocks)])
    widths = plan.rows.widths
    listed = list(chain.from_iterable(blocks))
    tokens = {}
    for place, value in enumerate(plan.rows.values):
        if isinstance(value.type, Text):
            reader = TokenReader(value.type)
            texts = [codes[place] for codes in listed]
            reader.read([text if isinstance(text, str) else None for text in texts])
            tokens[place] = reader.tokens()
    kept = [_stored(codes, widths, tokens) for codes in listed]
    table = np.array(kept, np.int64).reshape(len(kept), sum(widths))
    return UnitRows(table, starts, np.array(names, "S32") if plan.naming else None, tokens)


def _code(row: Row, value: Value) -> int | str | None:
    """Returns the code of a value; of a text the characters that are split into tokens."""
    code = row.code(value.expression)
    if isinstance(code, str) and isinstance(value.type, Text) and value.type.tokens is not None:
        return code[: value.type.tokens.longest]
    return code


def _stored(codes: Codes, widths: Sequence[int], texts: Container[int]) -> list[int]:
    """Replaces NULL by MISSING, texts by 0, and lists by their numbers."""
    stored: list[int] = []
    for place, (code, width) in enumerate(zip(codes, widths, strict=True)):
        if code is None:
            stored += [MISSING] * width
        elif place in texts:
            stored.append(0)
        elif isinstance(code, str):
            stored += map(int, code.strip("[]").split(","))
        else:
            stored.append(code)
    return stored


def _units_of_one_row(
    plan: BoundedRows,
    key: str,
    rows: Iterable[Codes],
) -> list[Codes]:
    """Sorts rows that are units by their codes; those with arrays by the hash of their content."""
    if any(isinstance(value.type, Array) for value in plan.rows.values):
        return sorted(rows, key=lambda codes: (hashed(key, *codes, 1), _codes_first(codes)))
    return sorted(rows, key=_codes_first)


def _codes_first(codes: Codes) -> list[tuple[bool, int, str]]:
    return [nulls_first(code) for code in codes]


def _ordered(
    key: str,
    unit: str,
    rows: Iterable[Codes],
) -> list[Codes]:
    """Sorts rows by the hash of their content, their unit and their number among equal rows."""
    seen = Counter[Codes]()
    placed = []
    for codes in rows:
        seen[codes] += 1
        number = seen[codes]
        digest = hashed(key, *codes, unit, number)
        placed.append(((digest, _codes_first(codes), number), codes))
    placed.sort(key=lambda pair: pair[0])
    return [codes for _, codes in placed]


def place(key: str, *held: int | str | None) -> int:
    """Returns the pseudorandom rank of a group, or of a value, among those of a unit; a unit's
    groups of lowest rank are counted.

    ``held`` is the group or value, followed by the name of the unit. The rank is the upper bits of
    a y + b modulo a prime: a and b are hashes of the group, y is a hash of the unit.
    """
    *codes, unit = held
    a, b, *_ = _quarters(hashed(key, *codes))
    y, *times = _quarters(hashed(key))
    number = _number(str(unit))
    mask = 2**22 - 1
    for piece in range(3):
        y += times[piece] * (number >> 22 * piece & mask)
    return (a * (y % _PRIME) + b) % _PRIME // 2**7


def _quarters(digits: str) -> list[int]:
    """Splits 32 hexadecimal digits into four integers."""
    return [int(digits[start : start + 8], 16) for start in range(0, 32, 8)]


def _number(unit: str) -> int:
    """Maps the name of a unit to 64 bits: the integer that it spells, or else a hash of it."""
    if re.fullmatch(WHOLE_PATTERN, unit) and -(2**63) <= int(unit) < 2**63:
        return int(unit)
    return int(hashed(unit)[:15], 16)
