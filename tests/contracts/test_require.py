# SPDX-License-Identifier: Apache-2.0
"""A missing part is a skip that names it, and a failure where it is required."""

import ast
from pathlib import Path

import pytest

from tests.contracts.require import NEED_TORCH, missing, program

TESTS = Path(__file__).parents[1]


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


def imported(path: Path) -> set[str]:
    """What a module imports when it is loaded itself, by full names."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_without_pytorch_no_module_that_needs_it_is_collected() -> None:
    imports = {path.relative_to(TESTS).as_posix(): imported(path) for path in TESTS.rglob("*.py")}
    needing = {"torch", "torch.nn", "sfumato.learning.torch"}
    left_out: set[str] = set()
    # until nothing is added: a module needs what the modules that it imports need
    while new := {path for path, names in imports.items() if names & needing} - left_out:
        left_out |= new
        needing |= {"tests." + path.removesuffix(".py").replace("/", ".") for path in new}
    left_out -= {"learning/torch/conftest.py"}
    listed = ("learning/torch/", *NEED_TORCH)
    assert [path for path in sorted(left_out) if not path.startswith(listed)] == []
    for entry in NEED_TORCH:
        assert any(path.startswith(entry) for path in left_out)
