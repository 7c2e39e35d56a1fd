# SPDX-License-Identifier: Apache-2.0
"""Prepared layouts of the small world: written to files, and questions that may read them."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.base import Exact
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.layout import whole
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import Prepared, read_manifest
from sfumato.engines.reference import Reference, Sample
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountUnits
from sfumato.plan.relation import Filter, PublicJoin, Relation, Scan, Semi, UnitJoin, first
from sfumato.plan.scalar import Field
from sfumato.plan.scope import provided
from sfumato.plan.stages import Bounded, Limits, Part, Raw, Tracked
from sfumato.privacy.distance import Distance, Norm
from tests.contracts import plans, world

OWNED = ("people", "stays", "notes", "days")


def stored(content: Mapping[str, world.Rows], folder: Path) -> dict[str, sf.Table]:
    """The tables of the world over Parquet files."""
    tables = {}
    for name, each in world.TABLES.items():
        path = folder / f"{name}.parquet"
        pq.write_table(world.arrow(name, content[name]), path)
        tables[name] = sf.Table(path, unit=each.unit, columns=each.columns, public=each.public)
    return tables


class Both:
    """DuckDB over prepared layouts, and the reference over the same rows and key."""

    def __init__(self, tables: Mapping[str, sf.Table], folder: Path) -> None:
        dataset = Dataset("world", tables)
        self.prepared = Prepared.open(folder, dataset)
        self.duckdb = DuckDB(tables, prepared=self.prepared)
        manifest = read_manifest(folder) or {}
        layouts = {
            name: Sample(whole(dataset, name), str(manifest["key"]))
            for name in self.prepared.layouts
        }
        rows = {name: pq.read_table(table.source).to_pylist() for name, table in tables.items()}
        self.reference = Reference(rows, layouts)

    def run(self, plan: Bounded) -> tuple[Exact, Exact]:
        """What DuckDB gives, and what the reference gives."""
        return self.duckdb.run(plan, "key"), self.reference.run(plan, "key")

    def close(self) -> None:
        self.duckdb.close()


@contextmanager
def both(content: Mapping[str, world.Rows], *, rows: int = 4) -> Iterator[Both]:
    """Both engines over layouts of at most ``rows`` rows of a unit."""
    with TemporaryDirectory() as place:
        tables = stored(content, Path(place))
        folder = prepare(tables, dataset="world", folder=Path(place, "layouts"), rows=rows)
        with closing(Both(tables, folder)) as engines:
            yield engines


# --- questions -----------------------------------------------------------------------------


def plan(
    relation: Relation, *aggregates, keys=(), limits=(None, None, None), kept: int = 4
) -> Bounded:
    """A plan of a layout; its distances are not what is tested."""
    raw = Raw(relation, keys, aggregates)
    parts = tuple(Part(each, Distance(Norm.L1, Fraction(1)), 1) for each in aggregates)
    return Bounded(Tracked(raw, "who", Limits(*limits), None, kept), Norm.L1, 1, parts)


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    """A table, perhaps filtered, perhaps joined to a public one, or to one row of each unit in
    another one, or looked up there.
    """
    name = draw(st.sampled_from(OWNED))
    relation: Relation = world.scan(name, "T.")
    for index in range(draw(st.integers(0, 2))):
        step = draw(st.sampled_from(("filter", "public", "unit", "semi")))
        if step == "filter":
            relation = Filter(relation, draw(plans.truths(provided(relation))))
        elif step == "unit":
            other = draw(st.sampled_from(("days",) if name == "days" else world.OWNED))
            relation = UnitJoin(
                relation, draw(single_rows(other, f"U{index}.")), draw(st.booleans())
            )
        elif step == "semi":
            other = draw(st.sampled_from(("days",) if name == "days" else world.OWNED))
            relation = Semi(relation, draw(looked_up(other, f"L{index}.")), draw(st.booleans()))
        else:
            drugs = world.scan("drugs", f"D{index}.")
            right = draw(st.sampled_from(drugs.columns))
            text = isinstance(right.type, sf.Text)
            left = draw(
                plans.texts(provided(relation)) if text else plans.codes(provided(relation), 2)
            )
            relation = PublicJoin(
                relation,
                Scan("drugs", f"D{index}.", drugs.columns),
                left,
                right,
                draw(st.booleans()),
            )
    return relation


@st.composite
def single_rows(draw: st.DrawFn, table: str, prefix: str) -> Relation:
    """Any one row of each unit in a table, perhaps of those that pass a test, perhaps if it passes
    one.
    """
    source: Relation = world.scan(table, prefix)
    if draw(st.booleans()):
        source = Filter(source, draw(plans.truths(provided(source))))
    found = any_row(source, f"{prefix}rank")
    return Filter(found, draw(plans.truths(provided(source)))) if draw(st.booleans()) else found


@st.composite
def looked_up(draw: st.DrawFn, table: str, prefix: str) -> Relation:
    """The rows of a table in which units are looked up: all, those that pass a test, or one of a
    unit.
    """
    if draw(st.booleans()):
        return draw(single_rows(table, prefix))
    source: Relation = world.scan(table, prefix)
    if draw(st.booleans()):
        source = Filter(source, draw(plans.truths(provided(source))))
    if draw(st.booleans()):
        source = Semi(source, world.scan(table, f"{prefix}in."), draw(st.booleans()))
    return source


def any_row(source: Relation, name: str) -> Filter:
    """One row of each unit, and no matter which."""
    return first(source, (), tuple(Field(column) for column in provided(source)), name)


@st.composite
def questions(draw: st.DrawFn) -> Bounded:
    """Aggregates of such a relation by at most two keys, under any limits."""
    if draw(st.booleans()):
        return draw(units_by_column())
    relation = draw(relations())
    columns = provided(relation)
    found = tuple(
        draw(plans.keys(columns, open_keys=draw(st.booleans())))
        for _ in range(draw(st.integers(0, 2)))
    )
    wanted = draw(st.lists(plans.aggregates(columns), min_size=1, max_size=3, unique=True))
    few = st.integers(1, 3) | st.none()
    return plan(
        relation,
        *wanted,
        keys=found,
        limits=(draw(few), draw(few), draw(few)),
        kept=draw(st.integers(1, 4)),
    )


@st.composite
def units_by_column(draw: st.DrawFn) -> Bounded:
    """How many units there are by a column, of rows that are perhaps chosen by that column, or by
    another.
    """
    relation: Relation = world.scan(draw(st.sampled_from(OWNED)), "T.")
    named = draw(
        st.sampled_from(
            [column for column in relation.columns if column.name not in ("T.x", "T.Big")]
        )
    )
    if draw(st.booleans()):
        tested = draw(st.sampled_from([(named,), (named,), relation.columns]))
        relation = Filter(relation, draw(plans.truths(tested)))
    missing, few = draw(st.booleans()), st.integers(1, 3) | st.none()
    limits = (None, draw(few), draw(few))
    return plan(
        relation,
        CountUnits(),
        keys=(world.by(relation, named.name, missing=missing),),
        limits=limits,
    )
