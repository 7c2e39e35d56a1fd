# SPDX-License-Identifier: Apache-2.0
"""The hash chain: every change of the past shows."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.ledger.journal import GENESIS, Entry, canonical_json, chained, is_intact

bodies = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=3)


def chain(contents: list[dict[str, object]]) -> list[Entry]:
    """A journal of these bodies."""
    entries: list[Entry] = []
    for body in contents:
        previous = entries[-1].hash if entries else GENESIS
        entries.append(chained(len(entries) + 1, "2026-01-01T00:00:00Z", "thaw", body, previous))
    return entries


def intact(entries: list[Entry]) -> bool:
    """Whether a whole journal is."""
    return all(is_intact(entry, before) for before, entry in zip([None, *entries], entries, strict=False))


@given(st.lists(bodies, max_size=5))
def test_an_untouched_journal_is_intact(contents: list[dict[str, object]]) -> None:
    assert intact(chain(contents))


@given(
    st.lists(bodies, min_size=1, max_size=4),
    st.data(),
    st.sampled_from(["seq", "at", "kind", "body", "previous", "hash"]),
)
def test_an_edited_entry_is_noticed(contents: list[dict[str, object]], data: st.DataObject, field: str) -> None:
    entries = chain(contents)
    place = data.draw(st.integers(0, len(entries) - 1))
    old = getattr(entries[place], field)
    entries[place] = replace(entries[place], **{field: old + 1 if field == "seq" else old + "x"})
    assert not intact(entries)


@given(st.lists(bodies, min_size=2, max_size=5), st.data())
def test_a_removed_entry_is_noticed(contents: list[dict[str, object]], data: st.DataObject) -> None:
    entries = chain(contents)
    del entries[data.draw(st.integers(0, len(entries) - 2))]
    assert not intact(entries)


@given(st.lists(bodies, min_size=2, max_size=5, unique_by=str), st.data())
def test_two_entries_that_change_places_are_noticed(contents: list[dict[str, object]], data: st.DataObject) -> None:
    entries = chain(contents)
    place = data.draw(st.integers(0, len(entries) - 2))
    entries[place], entries[place + 1] = entries[place + 1], entries[place]
    assert not intact(entries)


def test_a_rewritten_entry_breaks_the_next_one() -> None:
    entries = chain([{"a": 1}, {"a": 2}])
    forged = chained(1, entries[0].at, "thaw", {"a": 7}, GENESIS)
    assert is_intact(forged, None)
    assert not intact([forged, entries[1]])


def test_the_hash_is_sha256_of_the_whole_entry() -> None:
    entry = chained(1, "now", "thaw", {"b": 1, "a": "é"}, GENESIS)
    content = json.dumps([1, "now", "thaw", '{"a":"é","b":1}', GENESIS], ensure_ascii=False, separators=(",", ":"))
    assert entry.hash == hashlib.sha256(content.encode()).hexdigest()


@given(bodies)
def test_canonical_json_does_not_depend_on_the_order_of_keys(body: dict[str, object]) -> None:
    assert canonical_json(body) == canonical_json(dict(reversed(body.items())))
    assert json.loads(canonical_json(body)) == body


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_canonical_json_has_no_number_that_json_does_not_have(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": value})
