# SPDX-License-Identifier: Apache-2.0
"""The audit of a system finds planted faults, opens no declared source and charges nothing."""

import importlib
from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.audit import Verdict, residuals, system
from sfumato.audit.forms import FORMS, Form
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidNumber
from sfumato.metadata.dataset import Dataset
from sfumato.query.cells import Cells

SYSTEM = importlib.import_module("sfumato.audit.system")
COLUMNS = {"w": sf.Category("a", "b"), "n": sf.Integer(0, 10)}
UNIT = sf.Unit("who", max_rows=2, max_groups=2)
FEW = [form for form in FORMS if form.name in ("arrow", "csv", "duckdb, NOCASE unit")]


@pytest.fixture
def no_door(monkeypatch):
    """Without sessions, which take longer than engines."""
    monkeypatch.setattr(SYSTEM, "differing_statements", lambda *given: [])
    monkeypatch.setattr(SYSTEM, "NOISES", {})


def dataset(relation=sf.AddRemove, **options):
    # the source does not exist: nothing reads it
    table = sf.Table("nowhere/secret.csv", columns=COLUMNS, **{"unit": UNIT, **options})
    return Dataset("marked", {"people": table}, relation)


@pytest.mark.usefixtures("no_door")
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_a_sound_system_is_not_refuted(relation, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = []
    result = system(
        dataset(relation), rounds=2, forms=FEW, progress=lambda *given: done.append(given)
    )
    assert result.verdict is Verdict.UNDECIDED and result.findings == ()
    assert result.sentence == "not refuted: 2 pairs, 3 forms, seed 1"
    assert [each.result for each in result.forms] == [
        "as the reference",
        "as the reference",
        "refused: InvalidDeclaration",
    ]
    # five statements at two prices, one of two parts
    assert len(result.statements) == 4 and result.steps == 2 * 2 * 5
    # names of files and of the dataset are in no result
    assert "secret" not in repr(result) and "marked" not in repr(result)
    assert done[-1] == (8, 8) and result.questions == 2 * 4 and not list(tmp_path.iterdir())


@pytest.mark.usefixtures("no_door")
def test_a_row_that_is_a_unit():
    assert system(dataset(unit=None), rounds=2, forms=FEW[:1]).findings == ()


@pytest.mark.usefixtures("no_door")
def test_a_halved_distance_is_found_with_its_statement_and_seed(monkeypatch):
    honest = Cells.distance

    def halved(self, norm):
        claim = honest(self, norm)
        return replace(claim, value=claim.value / 2)

    monkeypatch.setattr(Cells, "distance", halved)
    result = system(dataset(), rounds=2, forms=FEW[:1], seed=7)
    assert result.verdict is Verdict.VIOLATED and "seed 7" in result.sentence
    assert "seed 7" in result.findings[0] and "SELECT" in result.findings[0]


@pytest.mark.usefixtures("no_door")
def test_a_form_that_differs_or_fails_is_found(monkeypatch):
    wrong = Form("wrong", lambda frame, table, folder: (frame.slice(1), {}))
    result = system(dataset(), rounds=1, forms=[wrong])
    assert result.forms[0].result == "DIFFERS" and result.verdict is Verdict.VIOLATED

    def fails(self, plans):
        raise EngineFailed

    monkeypatch.setattr(SYSTEM.MadeUp, "integers", fails)
    result = system(dataset(), rounds=1, forms=FEW[:1])
    assert "fails after the charge" in result.findings[0]


def test_sessions_over_both_worlds_show_the_same_and_noise_is_as_stated(monkeypatch):
    text = "SELECT COUNT(*) AS n FROM people"
    result = system(dataset(), [text], rounds=1, forms=[])
    assert result.findings == () and (result.questions, result.cells) == (1, 4000)

    monkeypatch.setattr(SYSTEM, "differing_statements", lambda *given: [text])
    narrow = residuals([0] * 2000, sigma=1)
    monkeypatch.setattr(SYSTEM, "noisy_cells", lambda name: narrow)
    result = system(dataset(), [text], rounds=1, forms=[], seed=5)
    assert result.verdict is Verdict.VIOLATED and len(result.findings) == 3
    assert "seed 5" in result.findings[0] and text in result.findings[0]


@pytest.mark.usefixtures("no_door")
def test_statements_of_an_owner():
    mine = ["SELECT COUNT(*) AS n FROM people", "SELECT * FROM people", "nonsense"]
    result = system(dataset(), mine, rounds=1, forms=FEW[:1])
    assert result.statements == (mine[0],) and result.refused == tuple(mine[1:])
    with pytest.raises(InvalidDeclaration):
        system(dataset(), mine[1:], rounds=1)
    for rounds in (0, 10**6):
        with pytest.raises(InvalidNumber):
            system(dataset(), rounds=rounds)
