# SPDX-License-Identifier: Apache-2.0
"""Writes, below each answered statement of tests/query/corpus, what it becomes once it is bounded.

The SQL is DuckDB's, of a question that is paid by epsilon, as the declarations alone make it. Above
it
stands how far the integers of each part move between neighbours, in the lattice steps of its value:
L1
under epsilon, the square of L2 under rho as a root; of quantiles Linf, of any set of leaves.
``update`` writes; ``check`` tells what is stale.
"""

import difflib
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

from sfumato.engines.duckdb import DuckDB
from sfumato.exact.rational import decimal_text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.stages import Bounded, Part
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation, Unit
from sfumato.query.pipeline import compile_plan
from sfumato.sql import Question, understand
from tests.contracts.corpus import DATASET, FOLDER, TODAY, statement

HEAD = "-- bounded:"


def question(path: Path) -> Question | None:
    """What an answered statement asks; None for a refused one."""
    found = statement(path)
    if found.verdict != "answered":
        return None
    answer = Fraction(found.facts.get("scalar", "0"))
    return understand(found.text, DATASET, today=TODAY, scalars=lambda query: answer)


def written(path: Path, engine: DuckDB) -> str:
    """The file as it should be."""
    text = path.read_text(encoding="utf-8").split(HEAD)[0].rstrip() + "\n"
    asked = question(path)
    return text if asked is None else "\n".join([text, HEAD, *_lines(asked, engine), ""])


def empty_tables() -> dict[str, Table]:
    """The declared tables, without a row."""
    return {name: _empty(table) for name, table in DATASET.tables.items()}


def opened() -> DuckDB:
    """An engine over the declared tables, without a row."""
    return DuckDB(empty_tables())


def _lines(asked: Question, engine: DuckDB) -> Iterator[str]:
    plans = {
        (relation, norm): _plan(asked, relation, norm)
        for relation in Relation
        for norm in (Norm.L1, Norm.L2)
    }
    for place, aggregate in enumerate(asked.raw.aggregates):
        yield f"-- {aggregate.title}"
        for relation in Relation:
            pure, concentrated = (
                _moved(plans[relation, norm], place) for norm in (Norm.L1, Norm.L2)
            )
            yield f"--   {relation.value}: {pure} under epsilon, {concentrated} under rho"
    for line in engine.statement(plans[Relation.ADD_REMOVE, Norm.L1]).splitlines():
        yield f"-- {line}".rstrip()


def _plan(asked: Question, relation: Relation, norm: Norm) -> Bounded:
    declared = Dataset(DATASET.name, DATASET.tables, relation)
    return compile_plan(asked.raw, declared, norm)


def _moved(plan: Bounded, place: int) -> str:
    """How far the integers of a part move, in steps."""
    part: Part = plan.parts[place]
    fine = plan.refinement
    if part.distance.norm is Norm.L2:
        return f"L2 sqrt({decimal_text(part.distance.value / fine**2)})"
    moved = f"{part.distance.norm.value} {decimal_text(part.distance.value / fine)}"
    return (
        f"{moved} in each of the {part.groups} groups of a unit"
        if part.distance.norm is Norm.LINF
        else moved
    )


def _empty(table: Table) -> Table:
    columns = dict.fromkeys(
        [*(table.unit.columns if isinstance(table.unit, Unit) else ()), *table.columns]
    )
    return replace(table, source=pa.table({name: pa.array([], pa.string()) for name in columns}))


def stale(engine: DuckDB) -> dict[Path, str]:
    """The files that are not as they should be, and what they should be."""
    wanted = {path: written(path, engine) for path in sorted(FOLDER.glob("*.sql"))}
    return {path: text for path, text in wanted.items() if path.read_text(encoding="utf-8") != text}


def main(arguments: list[str]) -> int:
    """``check`` or ``update``."""
    engine = opened()
    try:
        found = stale(engine)
    finally:
        engine.close()
    for path, text in found.items():
        if arguments == ["update"]:
            path.write_text(text, encoding="utf-8")
        else:
            before = path.read_text(encoding="utf-8").splitlines(keepends=True)
            sys.stderr.writelines(
                difflib.unified_diff(before, text.splitlines(keepends=True), path.name, "now")
            )
    if found and arguments != ["update"]:
        print(
            "The corpus is stale. To write it: make corpus; then read: git diff tests/query/corpus",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
