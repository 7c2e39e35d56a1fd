# SPDX-License-Identifier: Apache-2.0
"""A missing part is a skip that names it, and a failure where it is required."""

from pathlib import Path

import pytest

from tests.contracts.require import missing, program


@pytest.mark.parametrize("required", ["", "java", "postgresql"])
def test_a_missing_part_is_a_skip_that_names_it(
    monkeypatch: pytest.MonkeyPatch, required: str
) -> None:
    monkeypatch.setenv("SFUMATO_REQUIRE", required)
    with pytest.raises(pytest.skip.Exception, match="no server here"):
        missing("postgres", "no server here")


def test_a_missing_part_that_is_required_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_REQUIRE", "java,postgres")
    with pytest.raises(
        pytest.fail.Exception, match="no server here, and SFUMATO_REQUIRE names postgres"
    ):
        missing("postgres", "no server here")


def test_a_program_is_found_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SFUMATO_REQUIRE", raising=False)
    assert Path(program("sh")).name == "sh"
    with pytest.raises(pytest.skip.Exception, match="no program 'no-such-program' in PATH"):
        program("no-such-program")
