# SPDX-License-Identifier: Apache-2.0
"""Mutants of emitters: a tree whose DuckDB text is changed."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from sfumato.engines import duckdb_printer, sql_tree
from sfumato.engines.duckdb_printer import printed


@dataclass(frozen=True, slots=True)
class Verbatim(sql_tree.Expression):
    """Anything, as DuckDB text."""

    text: str


duckdb_printer._RULES[Verbatim] = lambda node: [node.text]  # type: ignore[index]


def changed(
    module: ModuleType, name: str, cut: str, put: str = ""
) -> tuple[str, Callable[..., Any]]:
    """A function of an emitter with something in the text of its tree changed."""
    honest = getattr(module, name)

    def wrong(*arguments: Any, **options: Any) -> Verbatim:
        return Verbatim(printed(honest(*arguments, **options)).replace(cut, put))

    return name, wrong
