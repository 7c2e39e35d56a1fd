# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo service``: its files open, and real processes tell one story."""

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import Failed
from sfumato.examples import demo_service as demo
from sfumato.service.settings import read_settings
from tests.contracts.shell import Shell


def test_the_files_of_the_clinic_open(tmp_path: Path) -> None:
    address = demo.write_files(tmp_path)
    settings = read_settings(tmp_path / "server.toml")
    assert settings.address == address
    with sf.load(settings.datasets[0]) as session:
        answer = session.query(demo._BY_WARD, epsilon=3)
    # half of 5,000 are of the heart, and noise of scale 1/3 moves none by 100
    assert answer.rows[0][0] == "heart" and abs(float(str(answer.rows[0][1])) - 2500) < 100


def test_what_goes_wrong_is_said() -> None:
    with pytest.raises(Failed, match="one of eight"):
        demo._require((2, "0.8") == (1, "0.4"), "one of eight wins")


@pytest.mark.long
def test_a_week_is_told(shell: Shell) -> None:
    ran = shell.run("demo", "service")
    assert (ran.code, ran.err) == (0, "")
    for words in ("answered 1, refused 7", "after one table more 0.1", "paid once", "is whole"):
        assert words in ran.out
    page = (shell.folder / "demo-service.html").read_text("utf-8")
    assert "bob" in page and "agreed on Tuesday" in page
