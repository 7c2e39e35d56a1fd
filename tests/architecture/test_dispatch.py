# SPDX-License-Identifier: Apache-2.0
"""Unknown means refuse: every dispatch over plan nodes, aggregates and column types raises on what
it does not know.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engines import filter_pushdown, reference_rows, value_codes, value_sql
from sfumato.engines import relation as engine
from sfumato.engines.spark_kind import largest_code
from sfumato.metadata.column import Column
from sfumato.noise import DiscreteLaplace
from sfumato.plan import relation, scalar, scope
from sfumato.query import clipping_probe, lineage, reuse
from sfumato.query.passes import prune
from sfumato.sql import lower, tables, typed, where_ranges
from tests.architecture.dispatch import dispatches, refuses

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"


class Foreign:
    """A node of nobody's, that has whatever it is asked for."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return ()


NODE = Foreign()
CALLS: dict[str, Callable[[], object]] = {
    "below": lambda: relation.below(NODE),
    "is_single": lambda: relation.is_single(NODE),
    "row_by_row": lambda: relation.row_by_row(NODE),
    "is_any_row": lambda: relation._is_any_row(NODE),
    "provided": lambda: scope.provided(NODE),
    "same_in_unit": lambda: scope.same_in_unit(NODE),
    "introduced": lambda: scope.introduced(NODE),
    "expressions": lambda: scope.expressions(NODE),
    "made": lambda: lineage._inputs([NODE]),
    "cut": lambda: prune._cut(NODE, set()),
    "widened": lambda: clipping_probe.widened(NODE, {}),
    "holding": lambda: list(where_ranges.holding(NODE)),
    "fields": lambda: tables.fields(NODE),
    "with_columns": lambda: tables.with_columns(NODE, {}),
    "rows of an engine": lambda: engine.rows(NODE, NODE),
    "rows of the reference": lambda: reference_rows.rows(NODE, {}),
    "split": lambda: filter_pushdown.split(NODE, {}),
    "source": lambda: filter_pushdown._source(NODE),
    "children": lambda: scalar.children(NODE),
    "substituted": lambda: scalar.substituted(NODE, lambda leaf: leaf),
    "is_number": lambda: lower._is_number(NODE),
    "column": lambda: typed.read(Column("c", NODE)),
    "value_of": lambda: typed.value_of(NODE, "v"),
    "code of a value": lambda: value_codes.code_of(Column("c", NODE), 1),
    "code of a reading": lambda: value_sql.code(NODE, "c", short=False),
    "narrower noise": lambda: reuse._is_narrower(NODE, DiscreteLaplace(1)),
    "narrower noise than": lambda: reuse._is_narrower(DiscreteLaplace(1), NODE),
    "largest code": lambda: largest_code((Column("c", NODE),)),
}


def silent(calls: dict[str, Callable[[], object]]) -> list[str]:
    """The calls that give an answer about a foreign node."""
    found = []
    for name, call in calls.items():
        try:
            call()
        except TypeError as refused:
            if str(refused) == "Foreign is not known here":
                continue
        found.append(name)
    return found


def test_every_dispatch_raises_on_a_foreign_node():
    assert silent(CALLS) == []


def test_a_silent_default_is_noticed(monkeypatch):
    monkeypatch.setattr(scope, "introduced", lambda node: ())
    assert silent(CALLS) == ["introduced"]


def test_every_match_over_a_closed_union_ends_in_a_refusal():
    found = {path: dispatches(path) for path in sorted(SOURCE.rglob("*.py"))}
    assert sum(map(len, found.values())) >= 30
    assert [
        f"{path}:{each.lineno}"
        for path, many in found.items()
        for each in many
        if not refuses(each)
    ] == []


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "        case _:\n            return ()\n",
        "        case _ if node:\n            raise TypeError\n",
    ],
)
def test_a_match_that_answers_for_what_it_does_not_know_is_noticed(tmp_path, ending):
    text = f"def f(node):\n    match node:\n        case Scan():\n            return node\n{ending}"
    (tmp_path / "new.py").write_text(text, encoding="utf-8")
    assert [refuses(each) for each in dispatches(tmp_path / "new.py")] == [False]
