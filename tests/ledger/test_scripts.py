# SPDX-License-Identifier: Apache-2.0
"""The table of scripts, against what Python's own Unicode tables say."""

import unicodedata

import pytest

from sfumato.ledger.scripts import _ranges, scripts_of

# by hand, from the charts of Unicode
KNOWN = {
    "a": {"Latn"},
    "Z": {"Latn"},
    "\xe9": {"Latn"},
    "\xdf": {"Latn"},
    "\u0259": {"Latn"},
    "\u0430": {"Cyrl"},
    "\u03bf": {"Grek"},
    "\u05d0": {"Hebr"},
    "\u0645": {"Arab"},
    "\u738b": {"Hani"},
    "\u3072": {"Hira"},
    "\u30ab": {"Kana"},
    "\u30fc": {"Hira", "Kana"},
    "\ud55c": {"Hang"},
    "\u3105": {"Bopo"},
    "5": {"Zyyy"},
    "_": {"Zyyy"},
    "\u0301": {"Zinh"},
    # full width, a ligature, an emoji, a filler, Gothic, a letter of no language's identifiers,
    # unassigned
    "\uff41": set(),
    "\ufb01": set(),
    "\u2603": set(),
    "\u3164": set(),
    "\U00010330": set(),
    "\u017f": set(),
    "\U000e0fff": set(),
}


@pytest.mark.parametrize("character", KNOWN, ids=ascii)
def test_a_character_has_the_scripts_of_the_charts(character: str) -> None:
    assert scripts_of(character) == KNOWN[character]


def test_the_ranges_are_apart_and_in_order() -> None:
    starts, ends, scripts = _ranges()
    assert len(starts) == len(ends) == len(scripts) > 300
    assert all(first <= last for first, last in zip(starts, ends, strict=True))
    assert all(last < first for last, first in zip(ends, starts[1:], strict=False))
    assert all(scripts)


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("Latn", "LATIN"),
        ("Cyrl", "CYRILLIC"),
        ("Grek", "GREEK"),
        ("Hebr", "HEBREW"),
        ("Armn", "ARMENIAN"),
    ],
)
def test_a_letter_is_of_the_script_that_its_name_tells(script: str, word: str) -> None:
    letters = [
        chr(code) for code in range(0x2E80) if unicodedata.category(chr(code)) in ("Lu", "Ll", "Lo")
    ]
    found = {each for each in letters if scripts_of(each) == {script}}
    assert len(found) > 20
    assert {each for each in found if not unicodedata.name(each).startswith(word)} == set()


def test_nothing_that_is_no_letter_mark_number_or_joiner_is_allowed_beyond_ascii() -> None:
    starts, ends, _ = _ranges()
    characters = (
        chr(code) for first, last in zip(starts, ends, strict=True) for code in (first, last)
    )
    kinds = {unicodedata.category(each) for each in characters if ord(each) > 127}
    # the few others are the apostrophe, the hyphen and the points of UTS 39
    assert kinds <= {
        "Lu",
        "Ll",
        "Lo",
        "Lm",
        "Lt",
        "Mn",
        "Mc",
        "Nd",
        "Nl",
        "No",
        "Sk",
        "Po",
        "Pd",
        "Pf",
        "Cf",
    }
