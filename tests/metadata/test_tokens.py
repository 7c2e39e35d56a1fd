# SPDX-License-Identifier: Apache-2.0
"""Texts of many scripts split into the tokens that their readers would name; none is an error."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidDeclaration
from sfumato.metadata import Column, Text, Tokens
from sfumato.plan.show import canonical

# Written out by hand.
_SPLITS = {
    "The eye's left, l\u2019œil": ["the", "eye's", "left", "l'œil"],
    "'tis rock'n'roll it's 5'6": ["tis", "rock'n'roll", "it's", "5", "6"],
    "a_b c-d 3.14 x\u00b2": ["a", "b", "c", "d", "3", "14", "x\u00b2"],
    "नमस्ते दुनिया": ["नमस्ते", "दुनिया"],
    "กิน ๑๒๓": ["กิ", "น", "๑๒๓"],
    "日本語テスト": ["日", "本", "語", "テ", "ス", "ト"],
    "左eye眼": ["左", "eye", "眼"],
    "ខ្មែរ": ["ខ្", "មែ", "រ"],
    "مرحبا بالعالم": ["مرحبا", "بالعالم"],
    "\U0001f469\u200d\U0001f467 ok \U0001f44d\U0001f3fd": [
        "\U0001f469\u200d\U0001f467",
        "ok",
        "\U0001f44d\U0001f3fd",
    ],
    "\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea": ["\U0001f1eb\U0001f1f7", "\U0001f1e9\U0001f1ea"],
    "a\ud800b \ud83d": ["a", "b"],
    "\x00a\x00": ["a"],
    "\U00011103\U00011127": ["\U00011103\U00011127"],
    "": [],
    " \t\r\n.": [],
}


@pytest.mark.parametrize("text", _SPLITS)
def test_a_text_splits_as_its_readers_would(text):
    assert list(Tokens().split(text)) == _SPLITS[text]


def test_two_forms_of_a_word_are_one_token():
    assert Tokens().split("e\u0301te\u0301 \u00e9t\u00e9 ÉTÉ") == ("été",) * 3
    assert Tokens().split("don't don\u2019t") == ("don't", "don't")


@pytest.mark.parametrize(
    ("dictionary", "tokens"),
    [
        ([], ["三", "个", "月", "头", "痛"]),
        (["三个月", "头痛"], ["三个月", "头痛"]),
        (["三个", "个月头", "月头痛"], ["三个", "月头痛"]),
        (["三个月头痛剧"], ["三", "个", "月", "头", "痛"]),
    ],
)
def test_the_longest_entry_that_begins_there_is_the_token(dictionary, tokens):
    assert list(Tokens(dictionary=dictionary).split("三个月头痛")) == tokens


def test_an_entry_never_cuts_a_character_from_its_marks():
    thai = Tokens(dictionary=["กน"])
    assert thai.split("กนิ") == ("ก", "นิ")
    assert thai.split("กน") == ("กน",)


def test_limits_and_stop_words():
    assert Tokens(longest=3).split("ab cd") == ("ab",)
    assert Tokens(most=2, stop=["a"]).split("a b a c d") == ("b", "c")
    assert Tokens(dictionary=["眼睛"], stop=["眼睛"]).split("左眼睛") == ("左",)


@given(
    st.text() | st.text(alphabet="aé'\u2019 ก\u0e34眼\ufe0f\u200d\U0001f44d\U0001f1eb\ud800\u0301")
)
def test_every_text_splits_and_each_token_is_one(text):
    splitter = Tokens(longest=50, most=20, dictionary=["眼ก"])
    tokens = splitter.split(text)
    assert len(tokens) <= 20
    for token in tokens:
        assert token == unicodedata.normalize("NFC", token) != ""
        assert not any(character.isspace() for character in token)
    assert splitter.split(" ".join(tokens)) == tokens or len(" ".join(tokens)) > 50


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF)))
def test_the_fast_pattern_finds_the_tokens_of_the_whole_one(text):
    # a character above U+FFFF makes the text one of the other pattern
    assert Tokens().split(f"{text} \U0001f44d") == (*Tokens().split(text), "\U0001f44d")


@pytest.mark.parametrize(
    "wrong",
    [
        {"stop": "the"},
        {"stop": ["two words"]},
        {"stop": [""]},
        {"stop": [1]},
        {"stop": ["The"]},
        {"dictionary": ["word"]},
        {"dictionary": ["眼word"]},
        {"dictionary": [""]},
        {"longest": 0},
        {"longest": 10**6 + 1},
        {"most": True},
        {"most": 1.0},
    ],
    ids=str,
)
def test_what_is_no_rule_is_refused(wrong):
    with pytest.raises(InvalidDeclaration):
        Tokens(**wrong)


def test_the_form_of_a_column_names_the_rule_and_the_version_of_unicode():
    plain, split = (
        canonical(Column("note", Text())),
        canonical(Column("note", Text(tokens=Tokens()))),
    )
    assert "tokens" not in plain["type"]
    assert split["type"]["tokens"] == {
        "node": "Tokens",
        "dictionary": [],
        "longest": 10_000,
        "most": 1_000,
        "stop": [],
        "unicode": unicodedata.unidata_version,
    }
    other = Column("note", Text(tokens=Tokens(stop=["a"])))
    assert canonical(other) != split


def test_a_text_takes_only_a_rule():
    with pytest.raises(InvalidDeclaration):
        sf.Text(tokens={"stop": ["a"]})
    assert (
        repr(sf.Text(missing="N", tokens=Tokens(most=5)))
        == "Text(missing='N', tokens=Tokens(most=5))"
    )


@given(st.text(alphabet=st.characters(max_codepoint=0x7F, exclude_characters="'")))
def test_an_ascii_text_is_its_runs_of_letters_and_digits(text: str) -> None:
    every = "".join(map(chr, range(128))).replace("'", "")
    for whole in (text, text + every + text):
        assert list(Tokens().split(whole)) == re.findall("[a-z0-9]+", whole.lower())
