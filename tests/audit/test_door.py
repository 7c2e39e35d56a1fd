# SPDX-License-Identifier: Apache-2.0
"""Sessions over two made-up worlds show the same except for released numbers; noise is as stated."""

import importlib
import logging
import os
import warnings

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit import Verdict
from sfumato.audit.door import NOISES, differing_statements, noisy_cells
from sfumato.errors import EngineFailed
from sfumato.metadata.dataset import Dataset

DOOR = importlib.import_module("sfumato.audit.door")
COUNT = "SELECT COUNT(*) AS n FROM people"
BY_JOB = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"
COLUMNS = {"age": sf.Integer(0, 99), "job": sf.Text()}


def world(**rows):
    types = {"age": pa.int64(), "job": pa.string()}
    frame = pa.table({name: pa.array(rows[name], kind) for name, kind in types.items()})
    return {"people": sf.Table(frame, columns=COLUMNS)}


ONE = world(age=[30, 40], job=["smith", "clerk"])
OTHER = world(age=[30, 40, None], job=["smith", "clerk", "\x00'"])
DATASET = Dataset("made-up", ONE)


HALVED = {"Laplace noise": {"epsilon": "0.25"}, "Gaussian noise": {"rho": "0.08"}}


@pytest.mark.parametrize("name", NOISES)
def test_mutant_of_halved_noise(name, monkeypatch):
    # that the honest noise is not accused: test_system
    monkeypatch.setitem(DOOR.NOISES, name, (HALVED[name], NOISES[name][1]))
    result = noisy_cells(name)
    assert result.values == 2000 and result.verdict is Verdict.VIOLATED
    assert 0.3 < result.spread[0] < 0.5 < result.spread[1] < 0.7


def test_worlds_look_the_same_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert differing_statements(DATASET, ONE, OTHER, [COUNT, BY_JOB, "nonsense"]) == []
    assert os.environ["XDG_STATE_HOME"] == str(tmp_path) and not list(tmp_path.iterdir())
    monkeypatch.delenv("XDG_STATE_HOME")
    assert differing_statements(DATASET, ONE, OTHER, [COUNT]) == []
    assert "XDG_STATE_HOME" not in os.environ


def test_a_preview_that_names_an_earlier_charge_is_no_finding():
    # the name of a charge is random
    doubled = "SELECT COUNT(*) * 2 AS n FROM people"
    assert differing_statements(DATASET, ONE, OTHER, [COUNT, doubled]) == []


def log(rows):
    logging.getLogger("sfumato").info("rows: %s", rows)


def warn(rows):
    warnings.warn(f"rows: {rows}", stacklevel=1)


def fail(rows):
    if rows > 2:
        raise EngineFailed


@pytest.mark.parametrize("tell", [log, warn, fail])
def test_mutants_that_tell_the_number_of_rows(tell, monkeypatch):
    honest = sf.Session.query

    def telling(self, sql, **price):
        tell(len(self._engine._tables["people"].source))
        return honest(self, sql, **price)

    monkeypatch.setattr(sf.Session, "query", telling)
    assert differing_statements(DATASET, ONE, OTHER, [COUNT]) == [COUNT]
