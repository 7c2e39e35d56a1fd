# SPDX-License-Identifier: Apache-2.0
"""Everything that an asker sees of a question, except released numbers.

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

from sfumato.errors import SfumatoError
from sfumato.query.answer import Answer
from sfumato.query.session import Session

EPSILON: Mapping[str, Any] = {"epsilon": 1}
RHO: Mapping[str, Any] = {"rho": "0.01"}
# for groups that are not public
DELTA: Mapping[str, Any] = {"delta": "1e-9"}

# what is computed from released numbers in a text that is otherwise public
_NOISY = re.compile(r"= \S+ was (answered first|learnt privately) \(#\)")
# a charge has a random name
_CHARGE = re.compile(r"\bcharge [0-9a-f]{12}")
# notes about released numbers alone: a noisy size that is none, an interval that is the whole range
_OF_NUMBERS = ("the noisy group size is not positive", "it cannot be told")
_BLANK = "#"


class _Lines(logging.Handler):
    """Keeps every record of every logger as a line."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # Spark lets its objects go whenever they are collected
        if record.name == "py4j.clientserver":
            return
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


@contextmanager
def logs() -> Iterator[list[str]]:
    """Collects what is logged inside the block, by whomever."""
    handler, root = _Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def seen(session: Session, text: str, price: Mapping[str, Any] = EPSILON) -> dict[str, Any]:
    """Returns what one question shows: its answer or its error, the account, what is logged."""
    with logs() as lines:
        answer = _answered(session, text, price)
    return {"answer": answer, "logs": list(lines), "budget": session.budget.to_json()}


def all_seen(session: Session, texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns what questions show, asked one after the other."""
    prices = cycle((EPSILON, RHO))
    return {
        text: seen_with_keys(session, text, price)
        for text, price in zip(texts, prices, strict=False)
    }


def seen_with_keys(session: Session, text: str, price: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all that an observer sees of one question; if its groups are not declared, a delta is
    paid for them.
    """
    shown = seen(session, text, price)
    if "spends delta" in str(shown["answer"]):
        return seen(session, text, {**price, **DELTA})
    return shown


def previewed(session: Session, texts: Iterable[str]) -> dict[str, object]:
    """Returns, for each question, all that an observer sees of its preview."""
    return {text: _previewed(session, text, {**EPSILON, **DELTA}) for text in texts} | {
        f"{text} (rho)": _previewed(session, text, RHO) for text in texts
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Returns the questions that look different in two datasets."""
    return [text for text in one if one[text] != other[text]]


def _previewed(session: Session, text: str, price: Mapping[str, Any]) -> object:
    try:
        preview = session.preview(text, **price)
    except SfumatoError as refused:
        return _without_charges([type(refused).__name__, str(refused)])
    return _without_charges(
        [
            preview.cost.to_json(),
            preview.error(),
            preview.explain(),
            preview.statement,
            repr(preview),
        ]
    )


def _without_charges(shown: object) -> Any:
    """Returns a form without the random names of charges."""
    return json.loads(_CHARGE.sub(_BLANK, json.dumps(shown)))


def _answered(session: Session, text: str, price: Mapping[str, Any]) -> object:
    try:
        answer = session.query(text, **price)
    except SfumatoError as refused:
        said = _NOISY.sub(_BLANK, _CHARGE.sub(_BLANK, str(refused)))
        return [type(refused).__name__, said, str(refused.__context__), refused.exit_code]
    return blanked(answer, open_keys="delta" in price)


def blanked(answer: Answer, *, open_keys: bool) -> dict[str, Any]:
    """Returns the form of an answer without what was released.

    With ``open_keys`` the groups are released, too.
    """
    if answer.inner:
        # the rest is computed from the inner answers, which are all that was read
        inner = [blanked(each, open_keys=open_keys) for each in answer.inner]
        return {"inner": inner, "columns": answer.form["columns"]}
    form: dict[str, Any] = dict(answer.form)
    released = dict(form.pop("released"))
    released.pop("order")
    parts = [{**part, "values": _BLANK, "copies": _BLANK} for part in released["parts"]]
    chosen = open_keys or released["output"]["having"] or released["output"]["limit"] is not None
    if not open_keys:
        for part, honest in zip(parts, released["parts"], strict=True):
            part["values"] = [len(row) for row in honest["values"]]
            part["copies"] = honest["copies"]
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
    form["cost"] = _without_charges(form["cost"])
    form["notes"] = _without_charges(form["notes"])
    form["notes"] = [_NOISY.sub(_BLANK, note) for note in form["notes"] if not _is_of_numbers(note)]
    return {**form, "charge_id": _BLANK, "released": {**released, "parts": parts}}


def _is_of_numbers(note: str) -> bool:
    return any(each in note for each in _OF_NUMBERS)
