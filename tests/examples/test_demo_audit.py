# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo audit``, whole, once, with fewer persons and without the forms of tables."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from sfumato.audit.system import System
from sfumato.cli.main import run
from sfumato.examples import demo_audit
from sfumato.ledger.report_text import LANGUAGES

AUDITED = System(1, ("SELECT 1",), (), 8, 4, (), ())


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demo printed, and where it wrote; it leaves nothing else."""
    folder, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    persons = demo_audit.area_persons()[:300]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setattr(demo_audit, "PATIENTS", 50)
        patch.setattr(demo_audit, "area_persons", lambda: persons)
        patch.setattr(demo_audit, "system", lambda *given, **named: AUDITED)
        assert run(["demo", "audit"]) == 0
    assert {path.name for path in folder.iterdir()} == {"demo-audit.html", "demo-audit", "state"}
    return out.getvalue(), folder


@pytest.mark.long
def test_exact_tables_tell_more_than_suppressed_ones_and_noisy_ones_nothing(
    shown: tuple[str, Path],
) -> None:
    printed, folder = shown
    exact, suppressed = map(int, re.findall(r"of (\d+) the whole", printed))
    assert 0 < suppressed < exact <= 300
    assert "noisy, epsilon 1 in all: nothing follows" in printed
    assert f"of {exact} the whole" in (folder / "demo-audit.html").read_text("utf-8")


def test_the_area_is_whole() -> None:
    persons = demo_audit.area_persons()
    rows = demo_audit.counted(persons, ("decade", "sex"))
    assert sum(row["n"] for row in rows) == len(persons) == 1231
    assert {row["sex"] for row in rows} == {"1", "2"} and len(rows) == 2 * 10


def test_the_cells_of_noisy_tables_do_not_depend_on_who_is_in_them(tmp_path: Path) -> None:
    persons = demo_audit.area_persons()
    for number, some in enumerate((persons[:1], persons[5:9])):
        (tmp_path / str(number)).mkdir()
        tables = demo_audit.noisy(some, tmp_path / str(number))
        # sex 2, decades 10, marital states 7, races 9: those of the codebook
        assert [len(rows) for rows in tables] == [140, 180, 126, 630]


@pytest.mark.long
def test_the_four_documents_have_the_same_facts_in_both_languages(
    shown: tuple[str, Path],
) -> None:
    _, folder = shown
    kinds = {path.name.split(".")[0] for path in (folder / "demo-audit").glob("*.html")}
    assert kinds == {"pipia", "dpia", "release", "registry"}
    for kind in kinds:
        pages = [
            (folder / "demo-audit" / f"{kind}.{language}.html").read_text("utf-8")
            for language in LANGUAGES
        ]
        numbers = [sorted(re.findall(r"<td>[\d.]+%?</td>", page)) for page in pages]
        assert numbers[0] == numbers[1] and "SELECT" not in "".join(pages)
    record = json.loads((folder / "demo-audit" / "registry.json").read_text("utf-8"))
    assert record["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 2
