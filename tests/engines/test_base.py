# SPDX-License-Identifier: Apache-2.0
"""Every engine keeps the protocol, and never sees noise or price."""

import ast
import inspect
import typing

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import (
    base,
    duckdb,
    emit,
    expression,
    files,
    linear_aggregates,
    reference,
    reference_rows,
    relation,
    value_codes,
    value_sql,
)
from sfumato.engines.base import Engine, nulls_first, tidy
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.plan.aggregate import CountRows, Mean, Sum
from tests.contracts.world import by

MODULES = [
    base,
    value_codes,
    duckdb,
    emit,
    expression,
    files,
    linear_aggregates,
    value_sql,
    reference,
    reference_rows,
    relation,
]


@pytest.mark.parametrize("engine", [DuckDB, Reference])
@pytest.mark.parametrize("name", ["ready", "statement"])
def test_an_engine_has_the_signatures_of_the_protocol(engine, name):
    promised, kept = (inspect.signature(getattr(each, name)) for each in (Engine, engine))
    assert list(promised.parameters) == list(kept.parameters)
    assert typing.get_type_hints(getattr(engine, name)) == typing.get_type_hints(
        getattr(Engine, name)
    )


def _is_harmless(imported: ast.ImportFrom) -> bool:
    """The type of an array of integers, and names that nobody can guess."""
    allowed = {"sfumato.noise.law": {"Integers"}, "sfumato.noise.entropy": {"token"}}
    return {name.name for name in imported.names} <= allowed.get(imported.module or "", set())


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_an_engine_never_imports_noise_or_price(module):
    imports = [
        each
        for each in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(each, ast.ImportFrom)
    ]
    names = {each.module or "" for each in imports if not _is_harmless(each)}
    rooms = {name.split(".")[1] for name in names if name.startswith("sfumato.")}
    assert rooms <= {"engines", "errors", "metadata", "plan", "privacy", "exact"}
    assert not {name for name in names if name.startswith("sfumato.privacy")} - {
        "sfumato.privacy.distance"
    }


def test_both_engines_answer_the_same_question_alike(asker):
    rows = [{"sex": "f", "age": 30}, {"sex": "m", "age": 41}, {"sex": "f", "age": None}]
    ask = asker(
        pa.Table.from_pylist(rows), {"sex": sf.Category("f", "m"), "age": sf.Integer(0, 40)}
    )
    age = ask.value("age")
    plan = ask.plan(CountRows(), Sum(age), Mean(age), keys=(by(ask.scan, "sex"),))
    assert (
        ask.duckdb(plan)
        == ask.reference(plan, rows)
        == {(0,): (2, 30, 30, 10), (1,): (1, 40, 40, 0)}
    )


GROUPS = {
    ("b", 1): (0, 2),
    ("b", None): (3, 0),
    (None, 5): (1, 1),
    ("a", 2): (0, 0),
    ("", -1): (-1, 0),
}


def test_groups_are_in_order_and_none_is_all_zeros():
    assert list(tidy(GROUPS).items()) == [
        ((None, 5), (1, 1)),
        (("", -1), (-1, 0)),
        (("b", None), (3, 0)),
        (("b", 1), (0, 2)),
    ]
    assert tidy({(): (0,)}) == {}


def test_null_comes_first():
    assert sorted(["b", None, "a", ""], key=nulls_first) == [None, "", "a", "b"]
    assert sorted([1, None, -1, 0], key=nulls_first) == [None, -1, 0, 1]
