# SPDX-License-Identifier: Apache-2.0
"""Texts of rows as numbers of tokens: any text, the same on each engine, whatever others hold."""

from contextlib import closing
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import reference_order
from sfumato.engines.base import RowTokens, UnitRows
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.engines.row_tokens import TokenReader
from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import MISSING
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import row_list
from tests.contracts.unit_rows import blocks

UGLY = [
    "", None, "a\0b c", "Z\u0301 e\u0301 \u00e9", "\u202eright to left", "\ufeffx", "  ", "'",
    "e" + "\u0301" * 40, "\U0001f469\u200d\U0001f4bb ok", "x" * 30_000, "red eye red", "|N|",
    "N", "\u0e01\u0e33 \u773c\u775b",
]  # fmt: skip
RULE = sf.Tokens(longest=20, most=3)


def words(tokens: RowTokens) -> list[tuple[str, ...]]:
    """The strings of the tokens of each row."""
    numbers = [tokens.strings[number] for number in tokens.numbers]
    ends = tokens.starts.tolist()
    return [tuple(numbers[one:other]) for one, other in pairwise(ends)]


def both(texts: list[str | None], kind: sf.Text, most: int = 9) -> tuple[list, list, UnitRows]:
    """The rows of DuckDB and of the reference, as blocks; and those of DuckDB."""
    who = [str(place % 4) for place in range(len(texts))]
    frame = pa.table({"who": who, "t": pa.array(texts, pa.string())})
    table = sf.Table(frame, unit=sf.Unit("who", max_rows_total=most), columns={"t": kind})
    data = Dataset("d", {"t": table})
    plan = compile_rows(row_list("SELECT t FROM t", data), data)
    with closing(DuckDB({"t": table})) as engine, engine.rows(plan, "key") as found:
        ours, kept = blocks(found), found
    rows = [{"who": one, "t": text} for one, text in zip(who, texts, strict=True)]
    with closing(Reference({"t": rows})) as engine, engine.rows(plan, "key") as known:
        return ours, blocks(known), kept


@pytest.mark.parametrize("kind", [sf.Text(), sf.Text(tokens=RULE), sf.Text(missing="N")], ids=repr)
@pytest.mark.parametrize("most", [1, 2, 9])
def test_ugly_texts_are_read_like_the_reference(kind: sf.Text, most: int) -> None:
    ours, expected, _ = both(UGLY, kind, most)
    assert ours == expected


@given(st.lists(st.one_of(st.none(), st.text(max_size=25)), min_size=1, max_size=6))
def test_any_texts_are_read_like_the_reference(texts: list[str | None]) -> None:
    texts = [text and text.encode("utf-8", "ignore").decode() for text in texts]
    ours, expected, _ = both(texts, sf.Text(tokens=RULE), most=1)
    assert ours == expected


def test_tokens_are_those_of_split_in_order() -> None:
    _, _, rows = both(UGLY[5:], sf.Text(tokens=RULE))
    expected = sorted(RULE.split(text or "") for text in UGLY[5:])
    assert sorted(words(rows.tokens[0])) == expected


def test_a_text_without_a_rule_is_one_token_and_a_missing_one_has_none() -> None:
    _, _, rows = both(["b c", None, "", "b c"], sf.Text())
    missing = rows.codes[:, 0] == MISSING
    assert set(rows.codes[:, 0].tolist()) <= {0, MISSING}
    found = words(rows.tokens[0])
    assert [row for row, gone in zip(found, missing, strict=True) if gone] == [()] * missing.sum()
    assert {row for row, gone in zip(found, missing, strict=True) if not gone} <= {("b c",), ("",)}


def test_numbers_are_in_the_order_of_strings_whatever_comes_first() -> None:
    """Of two tokens the first by code points has the smaller number, in every dataset."""
    for texts in (["\U00010000 \uffe5x", "b"], ["b a"], ["a b"], ["zz a", "b zz"]):
        reader = TokenReader(sf.Text(tokens=sf.Tokens()))
        for text in texts:
            reader.read([text])
        strings = list(reader.tokens().strings)
        assert strings == sorted(set(strings))


def test_the_tokens_of_some_units_are_theirs() -> None:
    tokens = RowTokens(
        np.array([5, 6, 7, 8], np.int32), np.array([0, 2, 2, 3, 4]), list("abcdefghi")
    )
    rows = UnitRows(np.zeros((4, 1), np.int64), np.array([0, 2, 3, 4]), None, {0: tokens})
    assert words(rows.of(np.array([0, 2])).tokens[0]) == [("f", "g"), (), ("i",)]
    with pytest.raises(WrongUse, match="pickled"):
        tokens.__reduce__()
    assert "array" not in repr(tokens)


def test_without_a_unit_the_tokens_of_others_are_as_they_were() -> None:
    whole, _, _ = both(UGLY, sf.Text(tokens=RULE))
    for gone in range(4):
        rest = [text if place % 4 != gone else None for place, text in enumerate(UGLY)]
        less, _, _ = both(rest, sf.Text(tokens=RULE))
        assert sum(block in whole for block in less) >= 3


def test_a_text_that_is_cut_elsewhere_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the reference orders rows by whole texts, DuckDB by what is split."""
    texts = ["ab" * 20 + str(place) for place in range(9)] + [
        "ab" * 5 + "-" * place for place in range(9)
    ]
    kind = sf.Text(tokens=sf.Tokens(longest=12))
    ours, expected, _ = both(texts, kind, most=2)
    assert ours == expected
    monkeypatch.setattr(reference_order, "_code", lambda row, value: row.code(value.expression))
    ours, expected, _ = both(texts, kind, most=2)
    assert ours != expected
