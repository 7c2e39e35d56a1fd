# SPDX-License-Identifier: Apache-2.0
"""``sfumato site``: check, approve and status, in the shell."""

import threading
import time
from pathlib import Path

import pytest

from sfumato import federated
from sfumato.cli.main import run
from sfumato.federated.site import Site
from tests.contracts.federation import NAMES, coordinating, serving, write_study

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


def test_a_site_that_declares_otherwise_is_told_each_declaration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(tmp_path)
    site = str(tmp_path / "anne.toml")
    assert run(["site", "check", "-c", site]) == 0
    assert "declares everything as the study trial" in capsys.readouterr().out
    data = tmp_path / "anne.data.toml"
    data.write_text(data.read_text().replace("upper = 99", "upper = 120"))
    assert run(["site", "check", "-c", site]) == 2
    assert "patients.age: Integer(0, 99) in the study" in capsys.readouterr().err


def test_an_owner_sees_a_run_and_approves_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_study(tmp_path, approve="by hand")
    told: list[str] = []
    with (
        coordinating(path),
        serving(path, *NAMES, told=told),
        federated.open(path, key=tmp_path / "analyst.pem") as study,
    ):
        answers: list[object] = []
        asking = threading.Thread(
            target=lambda: answers.append(study.query(BY_SEX, rho="0.1", wait_s=20))
        )
        asking.start()
        while len(told) < 3:
            time.sleep(0.02)
        assert run(["site", "status", "-c", str(tmp_path / "anne.toml")]) == 0
        shown = capsys.readouterr().out
        assert f"rho 0.1: {BY_SEX}" in shown
        for name in NAMES:
            site = str(tmp_path / f"{name}.toml")
            assert run(["site", "approve", shown.split()[0], "-c", site]) == 0
        asking.join()
        assert len(answers) == 1
        assert run(["site", "approve", "nothing", "-c", site]) == 1
        capsys.readouterr()
        run(["site", "status", "-c", site])
        assert "anne answered, northgate answered, riverside answered" in capsys.readouterr().out


def test_a_site_that_is_stopped_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path)

    def interrupted(self: Site, *given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Site, "serve", interrupted)
    assert run(["site", "serve", "-c", str(tmp_path / "anne.toml")]) != 0
    said = capsys.readouterr().out
    assert "anne takes part in trial" in said and "stopped; a run" in said
