# SPDX-License-Identifier: Apache-2.0
"""Computes the table of an answer from its released parts, and the JSON that is stored.

``release`` calls ``answer_body``; ``Answer`` restores parts and intervals from the bytes.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import cast

from sfumato.exact.rational import two_digits
from sfumato.exact.rounding import float_down, float_up
from sfumato.ledger.journal import canonical_json
from sfumato.noise import DiscreteGaussian, Noise
from sfumato.plan.evaluate import day
from sfumato.plan.output import Item, Order, Output
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.scalar import (
    And,
    Case,
    Compare,
    Constant,
    Estimate,
    Grouping,
    IsNull,
    Key,
    Like,
    Member,
    Not,
    Or,
    Scalar,
    Value,
    leaves,
)
from sfumato.plan.show import canonical
from sfumato.plan.stored import restore_output
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, Json, event_from_json, event_to_json
from sfumato.query.answer_rows import Rows, by_level
from sfumato.query.asker import FORMAT
from sfumato.query.estimate import TOTAL, AnyReleased, Group, Released
from sfumato.query.output_intervals import ranges_of, value_of
from sfumato.query.rounding import Move, is_beyond
from sfumato.query.selected import candidates, is_released

_DEFAULT_MISS = Fraction(5, 100)
# The note on intervals of rows that noise chose.
AMONG = (
    "Released numbers chose these rows: the intervals hold for all {rows:,} rows at once, "
    "so also for those that were chosen."
)
# Integers from here on are shown as floats, since a float may not hold them.
_LARGEST = 10**300


def answer_body(
    facts: Mapping[str, Json],
    output: Output,
    rows: Rows,
    key_types: Sequence[str],
    shown: Sequence[Sequence[Json]],
    moves: Sequence[Move | None] = (),
) -> bytes:
    """Returns a SQL answer as canonical JSON: the shown table, and the noisy integers that its
    intervals need.

    ``moves`` states for each part how far rounding may have moved the values that it reads.
    """
    parts = rows.parts
    groups = rows.codes
    order = _rows(output, parts, groups)
    errors = error_rows(output, parts, order, _DEFAULT_MISS)
    body: dict[str, Json] = {
        **facts,
        "format": FORMAT,
        "columns": [column_form(item, parts, key_types) for item in output.items],
        "rows": [_shown_row(output, parts, row, groups, shown) for row in order],
        "errors": errors,
        "released": {
            "order": list[Json](order),
            "members": [list[Json](each) for each in rows.members],
            "output": canonical(output),
            **_stored_parts(rows),
        },
    }
    if output.sets:
        body["totals"] = [_totals(output, groups[row]) for row in order]
    chosen = candidates(output, len(groups))
    among = [] if chosen == 1 else [AMONG.format(rows=chosen)]
    columns = zip(*cast(Sequence[list[Json]], errors), strict=True)
    body["notes"] = [
        *cast(list[Json], facts["notes"]),
        *among,
        *warnings([item.name for item in output.items], columns),
    ]
    body["bias"] = [
        *cast(list[Json], facts["bias"]),
        *_beyond_noise(output, moves, rows, order, errors),
    ]
    return canonical_json(body).encode()


def _stored_parts(rows: Rows) -> dict[str, Json]:
    """The stored form of the parts; ``levels`` is the number of levels that were measured apart."""
    if not rows.released:
        alone = [part for part in rows.parts if isinstance(part, Released)]
        return {"parts": [_part_to_json(part) for part in alone]}
    parts: list[Json] = [_part_to_json(part) for part in rows.released]
    return {"parts": parts, "levels": len(rows.released) // len(rows.parts)}


def _totals(output: Output, codes: Group) -> Json:
    """The names of the key columns over which a row is a total."""
    names: list[Json] = []
    for item in output.items:
        if isinstance(item.expression, Key) and codes[item.expression.index] is TOTAL:
            names.append(item.name)
    return names


def column_form(
    item: Item, parts: Sequence[AnyReleased], key_types: Sequence[str]
) -> dict[str, Json]:
    """Returns a column of an answer as JSON; ``released`` is set if its cells have noise and an
    interval.
    """
    kind = _type(item.expression, parts, key_types)
    return {
        "name": item.name,
        "type": kind,
        "released": is_released(item.expression),
    }


def error_rows(
    output: Output,
    parts: Sequence[AnyReleased],
    order: Sequence[int],
    miss: Fraction,
) -> list[Json]:
    """Returns the interval of each cell, row by row, at confidence 1 - ``miss``; null in a key
    column.
    """
    rows = parts[0].count if parts else 1
    share = miss / candidates(output, rows)
    columns = [_errors(item.expression, parts, order, share) for item in output.items]
    return [list(row) for row in zip(*columns, strict=True)]


def parts_from_json(forms: Json) -> list[Released]:
    """Returns the noisy integers of each aggregate from their JSON in an answer."""
    assert isinstance(forms, list), "written by answer_body"
    return [_part_from_json(cast(dict[str, Json], form)) for form in forms]


def released_parts(released: Mapping[str, Json]) -> list[AnyReleased]:
    """Returns the noisy integers of each aggregate of a stored answer, from its member
    ``released``.
    """
    parts = parts_from_json(released["parts"])
    levels = cast(int, released.get("levels", 0))
    if not levels:
        return list(parts)
    members = cast(list[list[int]], released["members"])
    return list(by_level(parts, levels, members))


def released_of(form: Mapping[str, Json]) -> tuple[Output, list[AnyReleased], list[int]]:
    """Returns the post-processing, the noisy integers and the shown rows of a stored answer."""
    released = cast(dict[str, Json], form["released"])
    output = restore_output(released["output"])
    return output, released_parts(released), cast(list[int], released["order"])


def _rows(output: Output, parts: Sequence[AnyReleased], groups: Sequence[Group]) -> list[int]:
    """The shown rows in order: HAVING, ORDER BY, OFFSET and LIMIT applied to released numbers."""
    shown_rows = list(range(len(groups)))
    if output.having is not None:
        having = output.having
        shown_rows = [
            row for row in shown_rows if value_of(having, parts, row, groups[row]) is True
        ]
    for order in reversed(output.order):
        shown_rows = _sorted(shown_rows, order, parts, groups)
    end = None if output.limit is None else output.offset + output.limit
    return shown_rows[output.offset : end]


def _sorted(
    rows: list[int],
    order: Order,
    parts: Sequence[AnyReleased],
    groups: Sequence[Group],
) -> list[int]:
    values = {row: value_of(order.expression, parts, row, groups[row]) for row in rows}
    empty = [row for row in rows if values[row] is None]
    full = [row for row in rows if values[row] is not None]
    full.sort(key=lambda row: cast(int, values[row]), reverse=order.descending)
    if order.nulls_first:
        return empty + full
    return full + empty


def _shown_row(
    output: Output,
    parts: Sequence[AnyReleased],
    row: int,
    groups: Sequence[Group],
    shown: Sequence[Sequence[Json]],
) -> list[Json]:
    """The JSON cells of a row."""
    return [_cell(item.expression, parts, row, groups, shown) for item in output.items]


def _cell(
    expression: Scalar,
    parts: Sequence[AnyReleased],
    row: int,
    groups: Sequence[Group],
    shown: Sequence[Sequence[Json]],
) -> Json:
    if isinstance(expression, Key):
        return shown[row][expression.index]
    value = value_of(expression, parts, row, groups[row])
    if _is_date(expression, parts) and isinstance(value, Fraction):
        return day(round(value)).isoformat()
    return _number(value)


def _is_date(expression: Scalar, parts: Sequence[AnyReleased]) -> bool:
    """Whether an expression is a quantile of dates."""
    return isinstance(expression, Estimate) and parts[expression.index].reading.is_date


def _number(value: Value) -> Json:
    """A value as JSON: a whole number as an integer, any other as a finite float."""
    if not isinstance(value, Fraction):
        return value
    if _is_whole(value):
        return int(value)
    return finite(float_down(value))


def _is_whole(value: Fraction) -> bool:
    """Whether a number is shown as an integer: it is whole, and a float represents it."""
    return value.denominator == 1 and abs(value.numerator) < _LARGEST


def finite(value: float) -> float:
    """Returns a float, with infinities replaced by the largest finite numbers."""
    return min(max(value, -sys.float_info.max), sys.float_info.max)


def _type(expression: Scalar, parts: Sequence[AnyReleased], key_types: Sequence[str]) -> str:
    """The type of a column of the answer."""
    match expression:
        case Key(index):
            return key_types[index]
        case Constant(value) if isinstance(value, bool | str):
            if isinstance(value, bool):
                return "boolean"
            return "text"
        case Compare() | Member() | Like() | IsNull() | Not() | And() | Or():
            return "boolean"
        case Case(branches, otherwise):
            results = [result for _, result in branches]
            kinds = {_type(result, parts, key_types) for result in (*results, otherwise)}
            # NULL has the type real here, and can stand beside any other type
            other = kinds - {"real", "integer"}
            if other:
                return other.pop()
            if kinds == {"integer"}:
                return "integer"
            return "real"
        case Estimate(index):
            read = parts[index].reading
            if read.is_date:
                return "date"
            is_whole = read.kind is Kind.NUMBER and read.unit == 1
            if is_whole:
                return "integer"
            return "real"
        case Grouping():
            return "integer"
        case _:
            return "real"


def _errors(
    expression: Scalar,
    parts: Sequence[AnyReleased],
    rows: Sequence[int],
    miss: Fraction,
) -> list[Json]:
    """The interval of each cell of a column as JSON; null for a key column.

    There is no half-width if the expression reads keys, as ``CASE WHEN age > 1 THEN COUNT(*) END``.
    """
    if not is_released(expression):
        return [None] * len(rows)
    is_date = _is_date(expression, parts)
    # a stored answer has no keys, so the estimate of such a cell cannot be computed again
    reads_keys = any(isinstance(leaf, Key | Grouping) for leaf in leaves(expression))
    errors: list[Json] = []
    cells = ranges_of(expression, parts, rows, miss)
    for row, cell in zip(rows, cells, strict=True):
        if cell.interval is None:
            error: dict[str, Json] = {"low": None, "high": None, "half_width": None}
        elif is_date:
            low, high = end_forms(*cell.interval, is_date=True)
            error = {"low": low, "high": high, "half_width": None}
        else:
            point = None if reads_keys else value_of(expression, parts, row, [])
            error = interval_form(*cell.interval, point)
            if reads_keys:
                error["half_width"] = None
        error |= _rank_error(expression, parts, row, miss)
        if cell.untold:
            error["untold"] = True
        errors.append(error)
    return errors


def interval_form(low: Fraction, high: Fraction, point: Value) -> dict[str, Json]:
    """Returns an interval as JSON: its ends as floats rounded outward, and its half-width around
    the estimate.
    """
    middle = point if isinstance(point, Fraction | int) else low
    least, most = end_forms(low, high, is_date=False)
    half_width = _outward(max(high - middle, middle - low), up=True)
    return {"low": least, "high": most, "half_width": half_width}


def end_forms(low: Fraction, high: Fraction, *, is_date: bool) -> tuple[Json, Json]:
    """Returns the ends of an interval as JSON, rounded outward: to floats, or to days."""
    if is_date:
        return day(math.floor(low)).isoformat(), day(math.ceil(high)).isoformat()
    return _outward(low, up=False), _outward(high, up=True)


def _rank_error(
    expression: Scalar,
    parts: Sequence[AnyReleased],
    row: int,
    miss: Fraction,
) -> dict[str, Json]:
    """The error of a quantile's rank in rows (RULES 22); empty for any other expression.

    On a grid it is the error of some value of the leaf, so the ends of the leaf are added.
    """
    if not isinstance(expression, Estimate):
        return {}
    part = parts[expression.index]
    if part.noise is not None:
        return {}
    error: dict[str, Json] = {
        "rank_error": _outward(part.rank_error(expression.place, miss), up=True)
    }
    if part.reading.rounding:
        ends = part.leaf(row, expression.place)
        low, high = end_forms(*ends, is_date=part.reading.is_date)
        error |= {"leaf_low": low, "leaf_high": high}
    return error


def _outward(value: Fraction, *, up: bool) -> Json:
    """A number as an integer or a float rounded outward; None if it is beyond all floats."""
    if _is_whole(value):
        return int(value)
    bound = float_up(value) if up else float_down(value)
    return bound if math.isfinite(bound) else None


def warnings(names: Sequence[str], columns: Iterable[Sequence[Json]]) -> list[Json]:
    """Returns notes on columns with cells that their noise hides; ``columns`` are their errors."""
    lines: list[Json] = []
    for name, column in zip(names, columns, strict=False):  # without a row there is no column
        without = sum(1 for error in column if error and is_untold(error))
        if without:
            rows = "rows" if without > 1 else "row"
            lines.append(
                f"{name}: in {without} {rows} it cannot be told, empty or not: "
                "there are too few rows for this noise, and the interval is the whole range, "
                "or reaches beyond its middle from the end at which the value was cut."
            )
    return lines


def _beyond_noise(
    output: Output,
    moves: Sequence[Move | None],
    rows: Rows,
    order: Sequence[int],
    errors: Sequence[Json],
) -> list[Json]:
    """Sentences on columns that rounding may move by more than a tenth of their noise.

    They are computed from the released numbers alone.
    """
    lines: list[Json] = []
    for place, item in enumerate(output.items):
        leaf = item.expression
        move = moves[leaf.index] if moves and isinstance(leaf, Estimate) else None
        if move is None or not isinstance(leaf, Estimate):
            continue
        part = rows.parts[leaf.index]
        for row, line in zip(order, errors, strict=True):
            error = cast(dict[str, Json], cast(list[Json], line)[place])
            if is_beyond(move, part, row, leaf, error["half_width"]):
                lines.append(
                    f"{item.name}: rounding moves each value by up to {two_digits(move.far)}, "
                    "which may change the result by more than a tenth of its noise."
                )
                break
    return lines


# It is in the bytes of each answer with a cell that the noise hides.
UNTOLD = b'"untold"'


def is_untold(error: Json) -> bool:
    """Returns whether the noise of a cell leaves no information: its interval is the whole possible
    range.
    """
    return isinstance(error, dict) and error.get("untold") is True


def _part_to_json(part: Released) -> Json:
    """The stored form of a released part."""
    read = part.reading
    form: dict[str, Json] = {
        "release": part.title,
        "kind": read.kind.value,
        "noise": None if part.noise is None else _noise_form(part.noise),
        "unit": str(read.unit),
        "lower": str(read.lower),
        "span": str(read.span),
        "upper": str(read.upper),
        "date": read.is_date,
        "least": str(read.least),
        "rounding": str(read.rounding),
        "rates": [str(rate) for rate in part.rates],
        "leaves": part.leaves,
        "values": [list(map(str, values)) for values in part.values],
        "copies": list[Json](part.copies),
    }
    if part.shifts:
        form["shifts"] = list[Json](part.shifts)
    if part.threshold:
        form["threshold"] = part.threshold
    return form


def _part_from_json(form: Mapping[str, Json]) -> Released:
    """Restores a released part from its stored form."""
    values = cast(list[list[str]], form["values"])
    numbers = map(int, chain.from_iterable(values))  # one map() a row takes three times as long
    rows = zip(*[numbers] * len(values[0]), strict=True) if values else ()
    event = None if form["noise"] is None else event_from_json(form["noise"])
    assert event is None or isinstance(event, AdditiveNoise), "written by answer_body"
    reading = Reading(
        Kind(form["kind"]),
        unit=Fraction(str(form["unit"])),
        lower=Fraction(str(form["lower"])),
        span=Fraction(str(form["span"])),
        upper=Fraction(str(form["upper"])),
        is_date=bool(form["date"]),
        least=Fraction(str(form["least"])),
        # earlier versions did not store it
        rounding=Fraction(str(form.get("rounding", "0"))),
    )
    return Released(
        str(form["release"]),
        reading,
        None if event is None else event.noise,
        tuple(rows),
        tuple(cast(list[int], form["copies"])),
        tuple(Fraction(rate) for rate in cast(list[str], form["rates"])),
        cast(int, form["leaves"]),
        tuple(cast(list[int], form.get("shifts", []))),
        cast(int, form.get("threshold", 0)),
    )


def _noise_form(noise: Noise) -> Json:
    """A noise law in a stable form: as the event of one step."""
    norm = Norm.L2 if isinstance(noise, DiscreteGaussian) else Norm.L1
    step = AdditiveNoise(noise, Distance(norm, Fraction(1)))
    return event_to_json(step)


def load_body(body: bytes) -> dict[str, Json]:
    """Returns the JSON of a stored answer from its bytes."""
    loaded: dict[str, Json] = json.loads(body)
    return loaded
