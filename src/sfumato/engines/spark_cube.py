# SPDX-License-Identifier: Apache-2.0
"""A bounded cube on Spark: the application caches its table of codes while the cube is open."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sfumato.engines.cube import Coded, names
from sfumato.engines.spark_kind import Kind, identifier
from sfumato.engines.spark_printer import Rows, printed
from sfumato.engines.spark_quiet import quiet
from sfumato.engines.sql_tree import Query
from sfumato.noise.entropy import token
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def opened_cube(
    plan: BoundedCube,
    session: "SparkSession",
    make: "Callable[[Callable[[DataFrame], None]], None]",
    ask: "Callable[[Callable[[DataFrame], list[Integers]], str], list[Integers]]",
) -> Iterator[Coded]:
    """Context manager that opens a bounded cube on Spark: its table of codes is cached, and dropped
    on exit.

    ``make`` runs a function on the frame of codes; ``ask`` runs a Spark statement. If Spark loses a
    part of the cached table, it computes it again from the same rows (``require_plain``), so the
    integers do not change.
    """
    view = f"sfumato_{token()}"
    persisted_frames = []
    place = f"{session.conf.get('spark.sql.globalTempDatabase')}.{identifier(view)}"
    codes = Rows(place, dict.fromkeys(names(plan), Kind.INTEGER))

    def keep(frame: "DataFrame") -> None:
        persisted_frames.append(frame.persist())
        frame.createGlobalTempView(view)
        frame.count()

    def marginal(query: Query) -> list[Integers]:
        # narrow: it adds up weights, each at most 2^20
        return ask(_arrays, printed(query, {"codes": codes}, narrow=True))

    try:
        make(keep)
        yield Coded(plan, "codes", marginal)
    finally:
        # an application that has ended caches nothing
        with suppress(Exception), quiet():
            session.catalog.dropGlobalTempView(view)
            for frame in persisted_frames:
                frame.unpersist()


def _arrays(frame: "DataFrame") -> list[Integers]:
    return [column.to_numpy() for column in frame.toArrow().columns]
