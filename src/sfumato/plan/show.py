# SPDX-License-Identifier: Apache-2.0
"""A plan as canonical JSON (for keys) and as text (for people)."""

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from typing import cast

from sfumato.exact.rational import decimal_text
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.privacy.event import Json


def canonical(node: object) -> Json:
    """The same JSON for the same plan, in every process and version of Python.

    What does not count when plans are compared is left out: the names of values, which follow
    the words of the question. So a question that is written otherwise is answered from the
    answer that is stored, whose titles stay as they were first asked.

    Guarantees:
        different plans have different forms
        the name of a value is no part of the form

    >>> canonical(CountRows())
    {'node': 'CountRows'}
    """
    kind = type(node)
    if kind in _PLAIN:
        return cast(Json, node)
    if kind is tuple or kind is list:
        return [canonical(each) for each in cast(Sequence[object], node)]
    if isinstance(node, Column):
        return _column(node)
    # mypy takes the __hash__ of a class for that of its instances
    names = _compared(cast(Hashable, kind))
    if names is not None:
        return {"node": kind.__name__, **{name: canonical(getattr(node, name)) for name in names}}
    if isinstance(node, Enum):
        return {"enum": kind.__name__, "value": str(node.value)}
    if isinstance(node, Fraction):
        return {"fraction": str(node)}
    raise TypeError(f"a plan holds {kind.__name__}, which has no canonical form")


_PLAIN = frozenset({bool, int, str, type(None)})


@cache
def _compared(kind: Hashable) -> tuple[str, ...] | None:
    """The fields of a dataclass that count when its instances are compared; None: it is none."""
    return tuple(field.name for field in fields(kind) if field.compare) if is_dataclass(kind) else None


@lru_cache(maxsize=4096)
def _column(column: Column) -> Json:
    """A declaration may list thousands of values, and a plan names its columns many times."""
    kind = column.type
    inner = {field.name: canonical(getattr(kind, field.name)) for field in fields(kind)}
    return {"node": "Column", "name": column.name, "type": {"node": type(kind).__name__, **inner}}


def title(aggregate: Aggregate) -> str:
    """An aggregate as one writes it.

    >>> title(CountRows())
    'COUNT(*)'
    """
    match aggregate:
        case CountRows():
            return "COUNT(*)"
        case CountUnits():
            return "COUNT(DISTINCT unit)"
        case CountDistinct(value):
            return f"COUNT(DISTINCT {value.name})"
        case CountValues(value):
            return f"COUNT({value.name})"
        case Sum(value):
            return f"SUM({value.name})"
        case Mean(value):
            return f"AVG({value.name})"
        case Variance(value):
            return f"VARIANCE({value.name})"
        case Quantiles(value, levels):
            return f"QUANTILE({value.name}, {', '.join(decimal_text(level) for level in levels)})"
