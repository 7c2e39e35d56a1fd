# SPDX-License-Identifier: Apache-2.0
"""The matches over closed unions: plan nodes, aggregates, types of columns, summaries."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from sfumato.metadata.column import ColumnType
from sfumato.plan.aggregate import Aggregate
from sfumato.plan.relation import Relation
from tests.architecture.structure import nodes


def below(kind: type) -> set[str]:
    """The names of all classes below one."""
    names = set[str]()
    for inner in kind.__subclasses__():
        names |= {inner.__name__} | below(inner)
    return names


# Statistic.SUM is no aggregate: only patterns of classes count.
UNIONS = [{kind.__name__ for kind in get_args(union)} for union in (Relation, ColumnType)]
UNIONS.append(below(Aggregate))


def matched(pattern: ast.pattern) -> Iterator[str]:
    """The names of the classes that a pattern asks for, at its top."""
    match pattern:
        case ast.MatchClass(ast.Name(name)):
            yield name
        case ast.MatchOr(patterns):
            for each in patterns:
                yield from matched(each)
        case ast.MatchAs(ast.pattern() as inner):
            yield from matched(inner)
        case ast.MatchValue(ast.Attribute(ast.Name("Summary"))):
            yield "Summary"


def is_dispatch(node: ast.Match) -> bool:
    """Whether a match is over one of the closed unions."""
    names = {name for case in node.cases for name in matched(case.pattern)}
    return bool(names) and (names == {"Summary"} or any(names <= union for union in UNIONS))


def refuses(node: ast.Match) -> bool:
    """Whether a match raises on what none of its cases knows."""
    last = node.cases[-1]
    anything = (
        isinstance(last.pattern, ast.MatchAs)
        and last.pattern.name is None
        and last.pattern.pattern is None
    )
    return anything and last.guard is None and isinstance(last.body[0], ast.Raise)


def dispatches(path: Path) -> list[ast.Match]:
    """The matches of a file that are over a closed union."""
    return [node for node in nodes(path) if isinstance(node, ast.Match) and is_dispatch(node)]
