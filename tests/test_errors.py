# SPDX-License-Identifier: Apache-2.0
"""Errors: the tree in the docstring is the tree of classes, and each says what to do."""

import inspect
import linecache
import pickle
import re
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import sfumato
from sfumato import errors
from sfumato.errors import (
    EngineFailed,
    Failed,
    LedgerError,
    Refused,
    SfumatoError,
    SqlSyntaxError,
    StudyRefused,
    WrongUse,
)

CLASSES = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if each.__module__ == errors.__name__
]
NO_CONSTRUCTOR = [each for each in CLASSES if "__init__" not in vars(each)]


def drawn_tree():
    """Each class of the docstring's tree with the parent that it is drawn under."""
    parents, stack = {}, [(-1, "Exception")]
    for line in errors.__doc__.splitlines():
        if not (found := re.match(r"^    [ |]*(?:\+-- )?((?:[A-Z]\w+, )*[A-Z]\w+)(?:  |$)", line)):
            continue
        depth = found.start(1)
        while stack[-1][0] >= depth:
            stack.pop()
        for name in found[1].split(", "):
            parents[name] = stack[-1][1]
        stack.append((depth, found[1].split(", ")[0]))
    return parents


def test_the_drawn_tree_is_the_tree_of_classes():
    assert drawn_tree() == {each.__name__: each.__base__.__name__ for each in CLASSES}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_the_exit_code_of_its_branch(kind):
    codes = {Refused: 1, StudyRefused: 1, WrongUse: 2, Failed: 3}
    expected = [code for branch, code in codes.items() if issubclass(kind, branch)]
    assert [kind.exit_code] == (expected or [3])


@pytest.mark.parametrize("kind", NO_CONSTRUCTOR, ids=lambda kind: kind.__name__)
def test_an_error_says_what_was_given_what_is_allowed_and_what_to_do(kind):
    error = kind("epsilon is -1.", allowed="above 0", remedy="Give more.")
    assert str(error) == "epsilon is -1.\nAllowed: above 0\nWhat to do: Give more."
    assert (error.problem, error.allowed, error.remedy) == (
        "epsilon is -1.",
        "above 0",
        "Give more.",
    )
    assert str(kind("epsilon is -1.")) == "epsilon is -1."
    assert (
        str(kind("epsilon is -1.", remedy="Give more.")) == "epsilon is -1.\nWhat to do: Give more."
    )


def test_a_syntax_error_carries_its_position():
    error = SqlSyntaxError("Unexpected FORM.", line=2, column=7, remedy="Write FROM.")
    assert (error.line, error.column, error.exit_code) == (2, 7, 1)
    assert str(error) == "Unexpected FORM.\nWhat to do: Write FROM."


def test_a_failed_engine_has_one_constant_message_and_takes_no_words():
    assert str(EngineFailed()) == str(EngineFailed())
    assert list(inspect.signature(EngineFailed).parameters) == []
    with pytest.raises(TypeError):
        EngineFailed("row 17 of alice")


def test_words_are_given_by_name():
    with pytest.raises(TypeError):
        SfumatoError("problem", "allowed")


def test_every_ledger_error_is_a_failure_of_the_ledger():
    names = {each.__name__ for each in CLASSES if issubclass(each, LedgerError)}
    assert names == {
        "LedgerError",
        "LedgerBusy",
        "LedgerCorrupt",
        "LedgerReadOnly",
        "LedgerTooNew",
        "LedgerUnavailable",
        "LedgerIncomplete",
        "LedgerMissing",
        "LedgerMoved",
        "InProgress",
        "LeaseExpired",
    }


@pytest.mark.parametrize("kind", NO_CONSTRUCTOR, ids=lambda kind: kind.__name__)
def test_an_error_survives_a_process_border(kind):
    error = pickle.loads(pickle.dumps(kind("given", allowed="this", remedy="that")))
    assert str(error) == "given\nAllowed: this\nWhat to do: that"


def test_every_error_has_a_sentence_of_its_own():
    assert all(each.__doc__ and each.__doc__ != each.__base__.__doc__ for each in CLASSES)
    assert sfumato.errors is errors


# --- what an error may quote -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (0.1, "0.1"),
        ("N", "'N'"),
        (Path("data/people.csv"), "'data/people.csv'"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (10**900, "a number of many digits"),
        ([1, 2], "a value of type list"),
        ("x" * 900, "'" + "x" * 299 + "..."),
    ],
)
def test_what_is_quoted_of_an_argument_is_short(value, text):
    assert errors.shown(value) == text


def test_of_a_frame_nothing_but_its_type_is_quoted():
    frame = pd.DataFrame({"ssn": ["078-05"]})
    assert errors.shown(frame) == "a value of type DataFrame"
    assert errors.shown({"ssn": frame}) == errors.shown({}) == "a value of type dict"


PLACES = {
    "postgresql://ada:secret@db.example/clinic?password=secret": "postgresql://db.example/clinic",
    "postgresql:/ada:secret@db.example/clinic": "postgresql:/db.example/clinic",
    "postgresql://ada:se/cr@secret@db.example/clinic#secret": "postgresql://db.example/clinic",
    "s3a://key:secret@bucket/people.parquet": "s3a://bucket/people.parquet",
    "HOST=db PassWord = 'secret secret' port=1": "HOST=db PassWord=...",
    "data/people.csv": "data/people.csv",
    "data/a@b?.parquet": "data/a@b?.parquet",
    "/data/pass/year=2024": "/data/pass/year=2024",
}


@pytest.mark.parametrize("place", PLACES)
def test_no_password_of_an_address_is_quoted(place):
    assert errors.without_secrets(place) == PLACES[place]
    assert errors.shown(place) == repr(PLACES[place])


def test_a_notebook_shows_the_callers_line_and_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = "import sfumato as sf\n\ndef declared():\n    return sf.Integer(9, 0)\n\ndeclared()\n"
    # as IPython does: the source of a cell is where ``linecache`` finds it
    name = "<ipython-input-7>"
    source = (len(cell), None, cell.splitlines(keepends=True), name)
    monkeypatch.setitem(linecache.cache, name, source)
    with pytest.raises(errors.InvalidDeclaration) as caught:
        exec(compile(cell, name, "exec"), {})
    assert caught.value._render_traceback_() == [
        "line 4: return sf.Integer(9, 0)",
        "",
        "InvalidDeclaration: Bounds from 9 to 0.",
        "Allowed: lower < upper",
        "What to do: Swap them, or widen a single value.",
    ]
