# SPDX-License-Identifier: Apache-2.0
"""A table of codes that Spark keeps: it is kept while it is open, and given up however it ends."""

from contextlib import closing
from dataclasses import replace

import pytest

from sfumato.engines.cube import counted
from sfumato.engines.spark import SparkEngine
from sfumato.engines.sql_tree import Aggregate, As, Call, Column, Constant, TryCast
from sfumato.errors import EngineFailed, InvalidSource
from tests.contracts import cubes
from tests.contracts.spark import interpreted
from tests.contracts.world import declared
from tests.engines.test_cube import CLIQUES, SEVERAL, TWO


@pytest.fixture
def engine(spark):
    with closing(interpreted(SparkEngine(declared(SEVERAL), spark))) as opened:
        yield opened


def views(engine):
    folder = engine._session.conf.get("spark.sql.globalTempDatabase")
    return {each.viewName for each in engine._session.sql(f"SHOW VIEWS IN {folder}").collect()}


def kept(engine):
    return engine._session._jsparkSession.sharedState().cacheManager().numCachedEntries()


def test_the_table_is_kept_while_it_is_open_and_then_given_up(engine):
    before, cached = views(engine), kept(engine)
    with engine.cube(TWO) as opened:
        assert (len(views(engine) - before), kept(engine)) == (1, cached + 1)
        assert int(opened.marginals(CLIQUES)[-1]) == 6 * 2**20
    assert (views(engine), kept(engine)) == (before, cached)
    with pytest.raises(EngineFailed):
        opened.marginals(CLIQUES)
    with pytest.raises(KeyboardInterrupt), engine.cube(TWO):
        raise KeyboardInterrupt
    assert (views(engine), kept(engine)) == (before, cached)


def test_a_table_that_is_lost_is_made_again_alike(engine):
    with engine.cube(TWO) as opened:
        first = opened.marginals(CLIQUES)
        engine._session.catalog.clearCache()
        assert cubes.same(opened.marginals(CLIQUES), first)


def counting_rows(*given):
    """A marginal that counts rows in place of adding up their weights."""
    honest = counted(*given)
    *keys, total = honest.items
    cast = total.value
    weights = Call("coalesce", (Aggregate("count", (Column("weight"),)), Constant(0)))
    return replace(honest, items=(*keys, As(TryCast(weights, cast.type), total.name)))


def test_a_marginal_of_rows_without_weights_is_noticed(engine, monkeypatch):
    with engine.cube(TWO) as opened:
        honest = opened.marginals(CLIQUES)
        monkeypatch.setattr("sfumato.engines.cube.counted", counting_rows)
        assert not cubes.same(opened.marginals(CLIQUES), honest)


def test_an_application_that_has_ended_is_refused_before_anything_is_charged(engine, monkeypatch):
    monkeypatch.setattr(engine, "_session", None)
    with pytest.raises(InvalidSource, match="ended"):
        engine.cube(TWO)
