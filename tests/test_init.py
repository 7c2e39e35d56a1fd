# SPDX-License-Identifier: Apache-2.0
"""The lazy root: every public name is there, and none is paid for before it is used."""

import subprocess
import sys

import pytest

import sfumato

HEAVY = ("duckdb", "sqlglot", "pyarrow", "apsw", "click", "rich", "numpy", "pandas", "polars")


def loaded_after(code: str) -> set[str]:
    """The heavy modules that a fresh interpreter holds after running code."""
    report = f"import sys; {code}; print(*[name for name in {HEAVY} if name in sys.modules])"
    finished = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, timeout=60, check=True
    )
    return set(finished.stdout.split())


@pytest.mark.parametrize("name", sfumato.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(sfumato, name) is not None
    assert name in dir(sfumato)


def test_the_examples_are_named_by_the_root() -> None:
    assert sfumato.examples.people.__module__ == "sfumato.examples"
    assert "examples" in dir(sfumato)


# a room that imports another comes after it
ROOMS = ("telemetry", "synopsis", "synthetic", "learning", "audit")


def test_a_room_is_loaded_when_it_is_first_named() -> None:
    named = "; ".join(
        f"assert 'sfumato.{room}' not in sys.modules, {room!r}; sfumato.{room}; "
        f"assert 'sfumato.{room}' in sys.modules, {room!r}"
        for room in ROOMS
    )
    assert loaded_after(f"import sfumato; {named}") <= set(HEAVY)
    assert set(ROOMS) <= set(dir(sfumato))


def test_a_room_without_its_package_names_the_extra() -> None:
    wanting = """
import sys
from importlib import import_module
for package in ("torch", "sklearn"):
    sys.modules[package] = None
    try:
        import_module(f"sfumato.learning.{package}")
    except ImportError as error:
        print(error)
"""
    said = subprocess.run(
        [sys.executable, "-c", wanting], capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()
    assert len(said) == 2
    for line, extra in zip(said, ("torch", "sklearn"), strict=True):
        assert f"pip install 'sfumato[{extra}]'" in line


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'sfumato' has no attribute 'nothing'"):
        _ = sfumato.nothing


def test_importing_the_root_loads_nothing_heavy() -> None:
    assert loaded_after("import sfumato; dir(sfumato)") == set()


def test_declaring_and_the_help_of_the_command_load_no_engine() -> None:
    # numpy is what noise is made of, and a declaration names the unit of noise
    assert loaded_after("import sfumato as sf; sf.Budget(1); sf.Unit('p'); sf.Integer(0, 9)") <= {
        "numpy"
    }
    found = loaded_after("from sfumato.cli.main import run; run(['--version'])")
    assert found.isdisjoint({"duckdb", "sqlglot", "pyarrow", "apsw"})


def test_asking_does_load_the_engine() -> None:
    assert "duckdb" in loaded_after("import sfumato as sf; sf.connect")


def test_the_public_names_are_the_same_object_wherever_they_are_imported() -> None:
    from sfumato.query.connect import connect

    assert sfumato.connect is connect
    assert sfumato.__version__.count(".") == 2
