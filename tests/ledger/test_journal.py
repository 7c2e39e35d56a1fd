# SPDX-License-Identifier: Apache-2.0
"""The hash chain: every change of the past shows."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.ledger.journal import (
    LEGACY,
    Entry,
    canonical_json,
    chained,
    genesis,
    is_intact,
    read_json,
)

bodies = st.dictionaries(
    st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=3
)


def chain(contents: list[dict[str, object]], name: str = "d") -> list[Entry]:
    """A journal of these bodies."""
    entries: list[Entry] = []
    for body in contents:
        previous = entries[-1].hash if entries else genesis(name)
        entries.append(
            chained(name, len(entries) + 1, "2026-01-01T00:00:00Z", "thaw", body, previous)
        )
    return entries


def intact(entries: list[Entry]) -> bool:
    """Whether a whole journal is."""
    return all(
        is_intact(entry, before) for before, entry in zip([None, *entries], entries, strict=False)
    )


@given(st.lists(bodies, max_size=5), st.sampled_from([LEGACY, "d", "d/p"]))
def test_an_untouched_journal_is_intact(contents: list[dict[str, object]], name: str) -> None:
    assert intact(chain(contents, name))


@given(
    st.lists(bodies, min_size=1, max_size=4),
    st.data(),
    st.sampled_from(["seq", "at", "kind", "body", "previous", "hash"]),
    st.sampled_from([LEGACY, "d"]),
)
def test_an_edited_entry_is_noticed(
    contents: list[dict[str, object]], data: st.DataObject, field: str, name: str
) -> None:
    entries = chain(contents, name)
    place = data.draw(st.integers(0, len(entries) - 1))
    old = getattr(entries[place], field)
    entries[place] = entries[place]._replace(**{field: old + 1 if field == "seq" else old + "x"})
    assert not intact(entries)


@given(st.lists(bodies, min_size=2, max_size=5), st.data())
def test_a_removed_entry_is_noticed(contents: list[dict[str, object]], data: st.DataObject) -> None:
    entries = chain(contents)
    del entries[data.draw(st.integers(0, len(entries) - 2))]
    assert not intact(entries)


@given(st.lists(bodies, min_size=2, max_size=5, unique_by=str), st.data())
def test_two_entries_that_change_places_are_noticed(
    contents: list[dict[str, object]], data: st.DataObject
) -> None:
    entries = chain(contents)
    place = data.draw(st.integers(0, len(entries) - 2))
    entries[place], entries[place + 1] = entries[place + 1], entries[place]
    assert not intact(entries)


def test_a_rewritten_entry_breaks_the_next_one() -> None:
    entries = chain([{"a": 1}, {"a": 2}])
    forged = chained("d", 1, entries[0].at, "thaw", {"a": 7}, genesis("d"))
    assert is_intact(forged, None)
    assert not intact([forged, entries[1]])


@given(st.lists(bodies, min_size=1, max_size=3))
def test_an_entry_of_another_chain_is_noticed(contents: list[dict[str, object]]) -> None:
    moved = [entry._replace(chain="e") for entry in chain(contents)]
    assert not intact(moved)
    assert len({genesis(name) for name in ("d", "e", LEGACY)}) == 3


@given(st.lists(bodies, min_size=1, max_size=3), st.data())
def test_what_one_field_loses_no_other_can_take(
    contents: list[dict[str, object]], data: st.DataObject
) -> None:
    entries = chain(contents)
    place = data.draw(st.integers(0, len(entries) - 1))
    old = entries[place]
    for first, second in (("previous", "at"), ("at", "kind"), ("kind", "body")):
        joined = f"{getattr(old, first)}\n{getattr(old, second)}"
        for split in range(len(joined)):
            forged = old._replace(**{first: joined[:split], second: joined[split + 1 :]})
            assert forged == old or not is_intact(forged, entries[place - 1] if place else None)


def test_the_hash_is_sha256_of_the_whole_entry() -> None:
    entry = chained("d", 1, "now", "thaw", {"b": 1, "a": "é"}, genesis("d"))
    start = hashlib.sha256(b"sfumato chain\nd").hexdigest()
    assert (
        entry.hash
        == hashlib.sha256(f'{start}\n1\nnow\nthaw\n{{"a":"é","b":1}}'.encode()).hexdigest()
    )


def test_the_hash_of_format_1_is_what_it_was() -> None:
    entry = chained(LEGACY, 1, "now", "thaw", {"b": 1, "a": "é"}, genesis(LEGACY))
    content = json.dumps(
        [1, "now", "thaw", '{"a":"é","b":1}', "0" * 64], ensure_ascii=False, separators=(",", ":")
    )
    assert entry.hash == hashlib.sha256(content.encode()).hexdigest()


@given(bodies)
def test_canonical_json_does_not_depend_on_the_order_of_keys(body: dict[str, object]) -> None:
    assert canonical_json(body) == canonical_json(dict(reversed(body.items())))
    assert json.loads(canonical_json(body)) == body


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_canonical_json_has_no_number_that_json_does_not_have(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": value})


@given(bodies)
def test_what_was_written_is_read(body: dict[str, object]) -> None:
    assert read_json(canonical_json(body)) == body


@pytest.mark.parametrize("text", ["", "{", "{}x", "{} ", " {}", "nonsense", '{"a":}'])
def test_what_was_not_written_so_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        read_json(text)
