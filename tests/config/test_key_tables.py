# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md has a table of the keys of each section, as they are declared."""

from dataclasses import replace

from sfumato.config.load import BUDGET
from sfumato.service.settings import KEYS
from tests.config import key_tables
from tests.config.key_tables import PAGE, SECTIONS, WRITTEN, key_table, marked, with_tables


def test_the_page_has_the_keys_as_they_are_declared() -> None:
    page = PAGE.read_text("utf-8")
    assert page == with_tables(page), "python -m tests.config.key_tables"
    assert sorted(marked(page)) == sorted([*SECTIONS, "columns"])


def test_a_key_that_changes_changes_its_table(monkeypatch) -> None:
    page = "<!-- keys of budget -->\n<!-- end of keys -->\n"
    before = with_tables(page)
    assert '| `epsilon` | `"1"` |' in before and "| refused |" in before
    renamed = (replace(BUDGET[0], name="eps"), *BUDGET[1:])
    monkeypatch.setitem(key_tables.SECTIONS, "budget", renamed)
    assert "| `eps` |" in with_tables(page) and "`epsilon`" not in with_tables(page)
    assert key_table(BUDGET) in before


def test_a_default_of_a_server_is_written_as_it_is_read() -> None:
    read = {key.name: key for key in KEYS}
    for name, text in WRITTEN.items():
        assert read[name].read(text) == read[name].default
