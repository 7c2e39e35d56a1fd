# SPDX-License-Identifier: Apache-2.0
"""Questions of mining that a file declares, and what is refused."""

from pathlib import Path

import pytest

from sfumato import mining as mn
from sfumato.config.mining import read_mining
from sfumato.errors import InvalidConfig, SfumatoError
from tests.contracts.shell import Shell

DECLARED = """
[mining.words]
recipe = "Terms"
data = "SELECT job FROM people"
text = "job"
keep = 5
rho = "0.1"
delta = "1e-7"
"""


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.chdir(tmp_path)
    opened = Shell(tmp_path, capsys)
    opened.configure("[tables.people]", f"{DECLARED}\n[tables.people]")
    return opened


def test_means_are_declared_with_their_length(shell: Shell) -> None:
    means = """
[mining.scans]
recipe = "Means"
data = "SELECT scan, ward FROM people"
picture = "scan"
by = "ward"
length = "2.5"
rho = 1
"""
    shell.configure("[tables.people]", f"{means}\n[tables.people]")
    found = read_mining("sfumato.toml", "scans")
    assert found.recipe == mn.Means("scan", by="ward", length="2.5")


def test_a_recipe_has_its_settings_and_cost(shell: Shell) -> None:
    found = read_mining("sfumato.toml", None)
    assert found.recipe == mn.Terms("job", keep=5) and found.data == "SELECT job FROM people"
    assert found.cost({"rho": None}) == {"rho": "0.1", "delta": "1e-7"}
    assert found.cost({"epsilon": "1", "delta": "1e-6"}) == {"epsilon": "1", "delta": "1e-6"}


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('recipe = "Terms"', 'recipe = "Words"', "Words"),
        ('recipe = "Terms"', "recipe = 1", "recipe"),
        ("keep = 5", "keeps = 5", "keeps"),
        ("keep = 5", "keep = 0", "keep"),
        ('text = "job"', "", "Write text, too"),
        ('recipe = "Terms"', 'recipe = "Term"', "Did you mean Terms"),
        ('data = "SELECT job FROM people"', "", "data"),
    ],
)
def test_what_is_no_question_is_refused_by_name(
    shell: Shell, old: str, new: str, named: str
) -> None:
    shell.configure(old, new)
    with pytest.raises(SfumatoError, match=named):
        read_mining("sfumato.toml", "words")


def test_another_name_is_refused(shell: Shell) -> None:
    with pytest.raises(InvalidConfig, match="nowhere"):
        read_mining("sfumato.toml", "nowhere")
