# SPDX-License-Identifier: Apache-2.0
"""A bounded cube on Spark: the application keeps its table of codes while it is open."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sfumato.engines.cube import Coded, names
from sfumato.engines.spark_kind import Kind, identifier
from sfumato.engines.spark_quiet import quiet
from sfumato.engines.spark_statement import Rows, translated
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
    """``make`` hands over the frame of codes, ``ask`` runs a statement of Spark's.

    What is lost of the table is made again of the same rows (``require_plain``), so its integers stay.
    """
    view, kept = f"sfumato_{token()}", []
    place = f"{session.conf.get('spark.sql.globalTempDatabase')}.{identifier(view)}"
    codes = Rows(place, dict.fromkeys(names(plan), Kind.INTEGER))

    def keep(frame: "DataFrame") -> None:
        kept.append(frame.persist())
        frame.createGlobalTempView(view)
        frame.count()

    try:
        make(keep)
        # sums of weights, each at most 2^20
        yield Coded(
            plan, "codes", lambda sql: ask(_arrays, translated(sql, {"codes": codes}, narrow=True))
        )
    finally:
        # an application that is gone keeps nothing
        with suppress(Exception), quiet():
            session.catalog.dropGlobalTempView(view)
            for frame in kept:
                frame.unpersist()


def _arrays(frame: "DataFrame") -> list[Integers]:
    return [column.to_numpy() for column in frame.toArrow().columns]
