# SPDX-License-Identifier: Apache-2.0
"""The source gets no denser: each measure is at most its limit in ``density.json``.

Where a measure fell, ``python -m tests.architecture.density`` lowers its limit.
"""

import pytest

from tests.architecture import density


def test_every_measure_has_a_limit():
    assert density.limits().keys() == {*density.MEANS, *density.places()}


@pytest.mark.parametrize("name", density.limits())
def test_no_measure_is_above_its_limit(name):
    if name in density.MEANS:
        assert density.measured(name) <= density.limits()[name]
    else:
        places = density.places()[name]()
        assert len(places) <= density.limits()[name], places


SOURCE = '''"""A module."""


def large(x):
    """Adds; this line has more characters than a line of the source may have, if the limit is at a hundred."""
    y = [[a for a in b] for b in x]
    return {sums} if x else y


class Unread:
    """Nobody's."""
'''


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A source of one room whose one module breaks every rule."""
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "__init__.py").write_text('"""A room."""\n\n__all__ = ["large"]\n')
    sums = " + ".join(["x"] * 200)
    (tmp_path / "room" / "module.py").write_text(SOURCE.replace("{sums}", sums))
    monkeypatch.setattr(density, "SOURCE", tmp_path)
    monkeypatch.setattr(density, "FILES", sorted(tmp_path.rglob("*.py")))


def test_what_is_dense_is_noticed(source):
    assert density.tokens_a_line() > 50
    assert [place.split()[0] for place in density.large_functions()] == ["room/module.py:4"]
    assert density.conditionals() > 2
    assert density.nested_comprehensions() == ["room/module.py:6"]
    assert density.long_lines() == ["room/module.py:5", "room/module.py:7"]
    assert density.unread_names() == ["room/module.py:10 Unread"]
    assert density.undocumented("room") == ["room: large"]


def test_a_limit_only_falls(tmp_path, monkeypatch):
    monkeypatch.setattr(density, "LIMITS", tmp_path / "density.json")
    monkeypatch.setattr(density, "FILES", [])
    monkeypatch.setattr(density, "MEANS", {"one": lambda: 3.0, "other": lambda: 5})
    density.lower()
    monkeypatch.setattr(density, "MEANS", {"one": lambda: 4.0, "other": lambda: 2})
    density.lower()
    assert (density.limits()["one"], density.limits()["other"]) == (3.0, 2)
