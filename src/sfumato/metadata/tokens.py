# SPDX-License-Identifier: Apache-2.0
"""Splits a text into tokens by a fixed, public rule that can fail on no text.

Words are runs of letters, digits and combining marks. In scripts that are written without spaces, a
token is one character, or the longest entry of a declared dictionary.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import NamedTuple

from sfumato.errors import InvalidDeclaration

# What a row of a table of texts may hold, at the largest: characters, and tokens.
_LONGEST = 10**6
_MOST = 10**5
# Blocks of Unicode whose letters are written without spaces between words: Thai, Lao, Burmese,
# Khmer, kana and Han, each with its extensions.
_SPACELESS = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3038, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x16FE0, 0x18DFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x323AF),
)
# Pictures that are no letters; a flag is two of its signs, and a modifier or a joined picture
# belongs to the one before it.
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_PICTURE = (
    "[\u231a-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2b05-\u2b55"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
    "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
)
_WIDE = re.compile("[\U00010000-\U0010ffff]")
# An ASCII text has no marks, no other scripts and no pictures.
_ASCII = re.compile("[a-z0-9]+(?:(?<=[a-z])'(?=[a-z])[a-z0-9]+)*")
# What is in no token of an ASCII text without apostrophes, as a blank: twice as fast.
_BLANKS = {point: " " for point in range(128) if not chr(point).isalnum()}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Tokens:
    """How the texts of a column are split into tokens.

    ``split`` takes the first ``longest`` characters, in the composed form of Unicode (NFC) and in
    lower case. A run of letters, digits and combining marks is a token; an apostrophe between
    letters belongs to it. In scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese) a token
    is the longest entry of ``dictionary`` that begins there, else one character with its marks. An
    emoji with its modifiers is a token. Then tokens of ``stop`` are left out, and of the others the
    first ``most`` are kept.

    ``unicode`` is the version of Unicode of this Python: with another one a text may split
    otherwise, so it is a part of the keys of answers.

    Raises:
        InvalidDeclaration: a stop word that is not one token; a dictionary entry that is not in
            scripts without spaces; ``longest`` is not 1 to 1,000,000, ``most`` not 1 to 100,000.

    >>> Tokens(stop=["the"]).split("The eye's left, l\u2019œil gauche")
    ("eye's", 'left', "l'œil", 'gauche')
    >>> Tokens(dictionary=["眼睛"]).split("左眼睛OK")
    ('左', '眼睛', 'ok')
    """

    stop: tuple[str, ...]
    dictionary: tuple[str, ...]
    longest: int
    most: int
    unicode: str
    _stopped: frozenset[str] = field(compare=False)
    _entries: frozenset[str] = field(compare=False)
    # by the first character of an entry, the most characters of one
    _widest: dict[str, int] = field(compare=False)

    def __init__(
        self,
        stop: Sequence[str] = (),
        dictionary: Sequence[str] = (),
        longest: int = 10_000,
        most: int = 1_000,
    ) -> None:
        _require_count("longest", longest, _LONGEST)
        _require_count("most", most, _MOST)
        entries = _read_dictionary(dictionary)
        object.__setattr__(self, "longest", longest)
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "unicode", unicodedata.unidata_version)
        object.__setattr__(self, "dictionary", tuple(entries))
        object.__setattr__(self, "_entries", frozenset(entries))
        widest: dict[str, int] = {}
        for characters in entries.values():
            widest[characters[0]] = max(len(characters), widest.get(characters[0], 1))
        object.__setattr__(self, "_widest", widest)
        # a stop word is split by the dictionary, but not by other stop words
        object.__setattr__(self, "_stopped", frozenset())
        words = dict.fromkeys(_strings("stop", stop))
        for place, word in enumerate(words, 1):
            self._require_token(place, word)
        object.__setattr__(self, "stop", tuple(words))
        object.__setattr__(self, "_stopped", frozenset(words))

    def __repr__(self) -> str:
        parts = [
            f"stop={list(self.stop)}" if self.stop else "",
            f"dictionary={list(self.dictionary)}" if self.dictionary else "",
            f"longest={self.longest}" if self.longest != 10_000 else "",
            f"most={self.most}" if self.most != 1_000 else "",
        ]
        return f"Tokens({', '.join(filter(None, parts))})"

    def split(self, text: str) -> tuple[str, ...]:
        """Returns the tokens of a text, in order, with their repetitions.

        >>> Tokens().split(""), Tokens(most=2).split("a b c")
        ((), ('a', 'b'))
        """
        tokens = self._split_normalized(_normalized(text[: self.longest]))
        if self._stopped:
            tokens = [token for token in tokens if token not in self._stopped]
        return tuple(tokens[: self.most])

    def _split_normalized(self, text: str) -> list[str]:
        """Returns the tokens of a normalised text, stop words too."""
        if text.isascii():
            # without an apostrophe tokens are what stands between blanks
            return _ASCII.findall(text) if "'" in text else text.translate(_BLANKS).split()
        patterns = _patterns(is_wide=_WIDE.search(text) is not None)
        runs = patterns.run.findall(text)
        if patterns.spaceless.search(text) is None:
            return runs
        tokens: list[str] = []
        for run in runs:
            if patterns.spaceless.match(run):
                tokens += self._longest_entries(patterns.character.findall(run))
            else:
                tokens.append(run)
        return tokens

    def _longest_entries(self, characters: list[str]) -> list[str]:
        """Returns the tokens of a run in scripts without spaces, each the longest entry there."""
        if not self._entries:
            return characters
        tokens = []
        start = 0
        while start < len(characters):
            token, width = characters[start], 1
            for wider in range(self._widest.get(token, 1), 1, -1):
                entry = "".join(characters[start : start + wider])
                if entry in self._entries:
                    token, width = entry, min(wider, len(characters) - start)
                    break
            tokens.append(token)
            start += width
        return tokens

    def _require_token(self, place: int, word: str) -> None:
        """Refuses a stop word that ``split`` changes, or splits into several tokens or none."""
        if self.split(word) != (word,):
            raise InvalidDeclaration(
                f"Word {place} of stop= is not one token.",
                allowed="words as Tokens(...).split returns them",
            )


def _normalized(text: str) -> str:
    """Returns a text in lower case and in the form NFC, with one kind of apostrophe."""
    if text.isascii():
        return text.lower()
    composed = unicodedata.normalize("NFC", text).lower().replace("\u2019", "'")
    # lower case can take a composed text apart
    return unicodedata.normalize("NFC", composed)


def _strings(name: str, words: Sequence[str]) -> Sequence[str]:
    """Refuses what is no sequence of strings, such as one string."""
    is_list = isinstance(words, Sequence) and not isinstance(words, str)
    if not is_list or not all(isinstance(word, str) for word in words):
        raise InvalidDeclaration(f"{name}= is no list of strings.", allowed="a list of strings")
    return words


def _require_count(name: str, count: int, most: int) -> None:
    """Refuses a number that is not an integer from 1 to ``most``."""
    if type(count) is not int or not 1 <= count <= most:
        raise InvalidDeclaration(
            f"{name}= is out of range.", allowed=f"an integer from 1 to {most:,}"
        )


def _read_dictionary(dictionary: Sequence[str]) -> dict[str, list[str]]:
    """Returns each entry of a dictionary, normalised, with its characters."""
    if not dictionary:
        return {}
    entries = {}
    patterns = _patterns(is_wide=True)
    for place, word in enumerate(_strings("dictionary", dictionary), 1):
        entry = _normalized(word)
        match = patterns.run.fullmatch(entry)
        if match is None or patterns.spaceless.match(entry) is None:
            raise InvalidDeclaration(
                f"Word {place} of dictionary= is not in a script that is written without spaces.",
                allowed="words of scripts that are written without spaces; others are split at "
                "what is no letter",
            )
        entries[entry] = patterns.character.findall(entry)
    return entries


class _Patterns(NamedTuple):
    """Patterns of normalised texts.

    ``run``: a word, an emoji, or a run in scripts without spaces. ``spaceless``: a letter of those
    scripts. ``character``: one character with its marks.
    """

    run: re.Pattern[str]
    spaceless: re.Pattern[str]
    character: re.Pattern[str]


@cache
def _patterns(*, is_wide: bool) -> _Patterns:
    """Returns the patterns of this version of Unicode, made of the categories of all points.

    ``is_wide``: for texts with characters above U+FFFF, which ``re`` finds 20 times more slowly.

    Python's ``\\w`` has letters and numbers, but no combining marks, which would cut Hindi.
    """
    marks, spaceless, others = [], [], []
    points = chain(range(0x323B0), range(0xE0100, 0xE01F0)) if is_wide else range(0x10000)
    in_blocks = {point for first, last in _SPACELESS for point in range(first, last + 1)}
    for point in points:
        kind = unicodedata.category(chr(point))
        if kind[0] == "M":
            marks.append(point)
        # digits of Thai, say, are runs as other digits are; numbers of Han are letters
        elif point in in_blocks and (kind[0] == "L" or kind == "Nl"):
            spaceless.append(point)
        elif kind[0] in "LN":
            others.append(point)
    mark, letter, wordly = _class_of(marks), _class_of(spaceless), _class_of(sorted(others + marks))
    apostrophe = rf"(?:(?<=[^\W\d_])|(?<=[{mark}]))'(?=[^\W\d_{letter}])"
    word = f"(?![{mark}])[{wordly}]+(?:{apostrophe}[{wordly}]+)*"
    run = f"(?:[{letter}][{mark}]*)+"
    emoji = f"{_FLAG}|{_PICTURE}(?:\u200d{_PICTURE})*"
    return _Patterns(
        re.compile(f"{word}|{run}|{emoji}"),
        re.compile(f"[{letter}]"),
        re.compile(f"(?s:.)[{mark}]*"),
    )


def _class_of(points: Sequence[int]) -> str:
    """Returns ascending code points as ranges of a character class.

    >>> _class_of([0x61, 0x62, 0x63, 0x7A])
    '\\\\U00000061-\\\\U00000063\\\\U0000007a-\\\\U0000007a'
    """
    ranges: list[list[int]] = []
    for point in points:
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
