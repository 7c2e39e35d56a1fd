# SPDX-License-Identifier: Apache-2.0
"""The file of a publication: what it states, exactly; refusals are in test_publish."""

from pathlib import Path

import pytest

from sfumato.config.publication import read_publication
from sfumato.errors import InvalidConfig


def test_decimals_stay_decimals_and_defaults_are_names(tmp_path: Path) -> None:
    path = tmp_path / "year.toml"
    path.write_text('rho = 0.1\n[questions.a]\nsql = "S"\nweight = 0.3\n[questions.b]\nsql = "T"\n')
    found = read_publication(str(path))
    assert found.title == "year" and found.titles == {"a": "a", "b": "b"}
    assert found.cost == {"rho": "0.1"} and found.weights == {"a": "0.3"}
    assert list(found.statements.items()) == [("a", "S"), ("b", "T")]


@pytest.mark.parametrize("body", [b"", b"\xff", b"rho = 1", b"[questions]", b"[questions.a]\n"])
def test_a_file_without_questions_is_refused(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(body)
    with pytest.raises(InvalidConfig):
        read_publication(str(path))


def test_sizes_are_whole_numbers_by_question(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('epsilon = "1"\n[questions.a]\nsql = "S"\nsize = 300\n', encoding="utf-8")
    assert read_publication(str(path)).sizes == {"a": 300}
