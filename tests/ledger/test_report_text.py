# SPDX-License-Identifier: Apache-2.0
"""Both languages say the same things."""

import re

import pytest

from sfumato.ledger.report_text import CHINESE, ENGLISH, LANGUAGES


def places(text: str) -> set[str]:
    """The values that a sentence has places for."""
    return set(re.findall(r"{(\w+)}", text))


@pytest.mark.parametrize("key", ENGLISH)
def test_a_sentence_has_the_same_places_in_both_languages(key: str) -> None:
    assert places(ENGLISH[key]) == places(CHINESE[key])


def test_both_have_the_same_keys() -> None:
    assert ENGLISH.keys() == CHINESE.keys()
    assert [words["lang"] for words in LANGUAGES.values()] == list(LANGUAGES)


def test_chinese_is_written_in_chinese() -> None:
    alike = [key for key in ENGLISH if ENGLISH[key] == CHINESE[key]]
    assert alike == ["committed"]
    assert not [text for text in CHINESE.values() if re.search(r"[,.;!?](?!\d)", text)]
