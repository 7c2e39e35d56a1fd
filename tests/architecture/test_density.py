# SPDX-License-Identifier: Apache-2.0
"""What the report on density notices."""

import pytest

from tests.architecture import density

SOURCE = '''"""A module."""


def large(x):
    """Adds; this line has more characters than a line of the source may have, if the limit is at a hundred."""
    y = [[a for a in b] for b in x]
    return {sums} if x else y


class NobodyReadsIt:
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
    assert density.unread_names() == ["room/module.py:10 NobodyReadsIt"]
    assert density.undocumented("room") == ["room: large"]


def test_the_report_has_a_line_for_each_measure_and_place(source):
    lines = density.report().splitlines()
    assert {line.rpartition(": ")[0] for line in lines} >= {
        *density.MEANS,
        *density.places(),
    }
    assert "  room/module.py:10 NobodyReadsIt" in lines
