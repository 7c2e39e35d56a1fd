# SPDX-License-Identifier: Apache-2.0
"""Everything that an analyst sees of a question, but for the released numbers.

What is left after they are blanked may depend on the text, the declarations and the charges
before, on nothing else: on neighbouring data it is the same.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import sfumato as sf
from sfumato.query.answer import Answer

EPSILON: Mapping[str, object] = {"epsilon": 1}
RHO: Mapping[str, object] = {"rho": "0.01"}
# for groups that are not public
DELTA: Mapping[str, object] = {"delta": "1e-9"}

# what is computed from released numbers in a text that is otherwise public
_NOISY = re.compile(r"= \S+ was (answered first|learnt privately) \(#\)")
# a charge has a random name
_CHARGE = re.compile(r"\bcharge [0-9a-f]{12}")
# notes about released numbers alone: a noisy size that is none, an interval that is the whole range
_OF_NUMBERS = ("the noisy group size is not positive", "it cannot be told")
_BLANK = "#"


class _Kept(logging.Handler):
    """Every record of every logger."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # Spark of another test in this process lets its objects go whenever they are collected
        if record.name == "py4j.clientserver":
            return
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


@contextmanager
def logs() -> Iterator[list[str]]:
    """What is logged inside, by whomever."""
    handler, root = _Kept(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def seen(session: sf.Session, text: str, price: Mapping[str, object] = EPSILON) -> dict[str, Any]:
    """What one question shows: its answer or its error, its charge, what is logged."""
    with logs() as lines:
        found = _answered(session, text, price)
    return {"answer": found, "logs": list(lines), "budget": session.budget.to_json()}


def all_seen(session: sf.Session, texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What a list of questions shows, one after the other.

    Open groups are paid for with a delta.
    """
    found = {}
    for text, price in zip(texts, cycle((EPSILON, RHO))):
        found[text] = seen(session, text, price)
        if "spends delta" in str(found[text]["answer"]):
            found[text] = seen(session, text, {**price, **DELTA})
    return found


def previewed(session: sf.Session, texts: Iterable[str]) -> dict[str, object]:
    """What a preview of each question shows."""
    return {text: _previewed(session, text, {**EPSILON, **DELTA}) for text in texts} | {
        f"{text} (rho)": _previewed(session, text, RHO) for text in texts
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The questions that look different in two datasets."""
    assert one.keys() == other.keys()
    return [text for text in one if one[text] != other[text]]


def _previewed(session: sf.Session, text: str, price: Mapping[str, object]) -> object:
    try:
        preview = session.preview(text, **price)
    except sf.SfumatoError as refused:
        return [type(refused).__name__, str(refused)]
    return [
        preview.cost.to_json(),
        preview.error(),
        preview.explain(),
        preview.statement,
        repr(preview),
    ]


def _answered(session: sf.Session, text: str, price: Mapping[str, object]) -> object:
    try:
        answer = session.query(text, **price)
    except sf.SfumatoError as refused:
        said = _NOISY.sub(_BLANK, _CHARGE.sub(_BLANK, str(refused)))
        return [type(refused).__name__, said, str(refused.__context__), refused.exit_code]
    return blanked(answer, open_keys="delta" in price)


def blanked(answer: Answer, *, open_keys: bool) -> dict[str, Any]:
    """The form of an answer without what was released.

    Of ``open_keys`` the groups are released too.
    """
    if answer.inner:
        # the rest is computed from the inner answers, which are all that was read
        inner = [blanked(each, open_keys=open_keys) for each in answer.inner]
        return {"inner": inner, "columns": answer.form["columns"]}
    form = dict(answer.form)
    released = dict(form.pop("released"))
    released.pop("order")
    parts = [{**part, "values": _BLANK, "copies": _BLANK} for part in released["parts"]]
    chosen = open_keys or released["output"]["having"] or released["output"]["limit"] is not None
    if not open_keys:
        for part, honest in zip(parts, released["parts"], strict=True):
            part["values"], part["copies"] = (
                [len(row) for row in honest["values"]],
                honest["copies"],
            )
    rows, errors = form.pop("rows"), form.pop("errors")
    if not chosen:
        cells = [
            [
                _BLANK if column["released"] else cell
                for column, cell in zip(form["columns"], row, strict=True)
            ]
            for row in rows
        ]
        # ORDER BY a released number orders the rows by it
        form["rows"], form["errors"] = sorted(cells, key=repr), [len(row) for row in errors]
    # a hash of the plan, in which the number of a sub-query is a constant
    form["parts"] = len(form["parts"])
    form["cost"] = json.loads(_CHARGE.sub(_BLANK, json.dumps(form["cost"])))
    form["notes"] = [_CHARGE.sub(_BLANK, note) for note in form["notes"]]
    form["notes"] = [_NOISY.sub(_BLANK, note) for note in form["notes"] if not _is_of_numbers(note)]
    return {**form, "charge_id": _BLANK, "released": {**released, "parts": parts}}


def _is_of_numbers(note: str) -> bool:
    return any(each in note for each in _OF_NUMBERS)
