# SPDX-License-Identifier: Apache-2.0
"""Statements of the corpus with pieces swapped, doubled, dropped and put elsewhere.

Whatever comes out: it is refused with an error of ours before it costs anything, or answered.
No other exception, no charge without an answer, no failure of the engine. The same seeds in
every run; longer runs by hand: ``python -m tests.attacks.test_mutated_statements 120``.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

import sfumato as sf
from sfumato.errors import Failed, OuterFailed
from sfumato.sql import row_expressions
from tests.attacks import shop
from tests.attacks.questions import MORE
from tests.contracts.corpus import statements

COUNT = "SELECT COUNT(*) FROM users"
TEXTS = [*(each.text for each in statements()), *MORE]
# tokens that are in no statement of the corpus
ODD = [
    *("NULL", "''", "-1", "0", "1e308", "99999999999999999999", "DATE '9999-12-31'", "INTERVAL 1 MONTH", "::INT", "[", "]"),
    *("DISTINCT", "OVER ()", "FILTER (WHERE amount > 1)", "QUALIFY", "LATERAL", "COLUMNS(*)", "?", "$1", ":a", "UNION ALL"),
    *("EXCEPT", "NOT", "EXISTS", "CASE", "END", "x -> x", "{'a': 1}", "NATURAL", "CROSS", "FULL", "ASOF", "USING", "ROLLUP"),
    *("ORDER BY ALL", "GROUP BY ALL", "PERCENT", "COLLATE NOCASE", "--", "/*", "*/", ";", '"a"', "0x1F", "$$a$$", "LIKE"),
    *("(SELECT AVG(amount) FROM events)", "(SELECT user_id FROM users)", "CURRENT_DATE", "NOW()", "TRUE", "IS NULL", "%", "||"),
]  # fmt: skip
_DIALECT = Dialect.get_or_raise("duckdb")


def pieces(text: str) -> list[str]:
    """The tokens of a statement, as they are written."""
    return [text[token.start : token.end + 1] for token in _DIALECT.tokenize(text)]


TOKENS = [pieces(text) for text in TEXTS]
POOL = [*ODD, *(token for tokens in TOKENS for token in tokens)]
TREES = [
    sqlglot.parse_one(text, read="duckdb")
    for text in TEXTS
    if ";" not in text and not text.startswith("COPY")
]
# what has a value: columns, constants, tests, calls
NODES = [node for tree in TREES for node in tree.walk() if isinstance(node, exp.Condition)]


def by_tokens(chance: random.Random) -> str:
    """A statement with its tokens mixed up."""
    tokens = list(chance.choice(TOKENS))
    for _ in range(chance.choice([1, 1, 2, 3])):
        one, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(5):
            case 0:
                tokens[one], tokens[other] = tokens[other], tokens[one]
            case 1:
                tokens[one] = chance.choice(POOL)
            case 2:
                tokens.insert(one, chance.choice(POOL))
            case 3:
                tokens[one:one] = tokens[other : other + chance.randrange(1, 6)]
            case _:
                tokens[one : one + 1] = [] if len(tokens) > 1 else tokens
    return " ".join(tokens)


def by_nodes(chance: random.Random) -> str:
    """A statement in whose syntax tree parts of other statements stand."""
    tree = chance.choice(TREES).copy()
    for _ in range(chance.choice([1, 1, 2, 3])):
        inside = [
            node
            for node in tree.walk()
            if node.parent is not None and isinstance(node, exp.Condition)
        ]
        if inside:
            chance.choice(inside).replace(chance.choice(NODES).copy())
    return tree.sql(dialect="duckdb")


def outcome(session: sf.Session, text: str, price: dict[str, object]) -> str:
    """How a statement ends; fails where it ends in a way that it must not."""
    before = session.budget.to_json()
    try:
        answer = session.query(text, **price)
    except OuterFailed as failure:
        # it ran over private answers, which are paid
        assert failure.charges and all(map(session.stored, failure.charges))
        return "failed"
    except Failed as failure:
        raise AssertionError(f"{type(failure).__name__}: {text}") from failure
    except sf.SfumatoError as refused:
        assert session.budget.to_json() == before, f"charged and refused ({refused}): {text}"
        if "delta" not in price and "spends delta" in str(refused):
            return outcome(session, text, {**price, "delta": "1e-9"})
        return type(refused).__name__
    assert answer.to_arrow().num_rows == len(answer.rows)
    answer.error("0.9"), answer.explain(), repr(answer)
    return "answered"


def outcomes(
    folder: Path, seed: int, mutate: Callable[[random.Random], str], count: int
) -> Counter[str]:
    """How many of the mutated statements end how."""
    chance = random.Random(seed)
    prices: Sequence[dict[str, object]] = ({"epsilon": "0.01"}, {"rho": "0.0001"})
    with shop.connected(folder, shop.data(), name=str(seed)) as session:
        return Counter(outcome(session, mutate(chance), prices[turn % 2]) for turn in range(count))


@pytest.mark.parametrize("seed", range(3))
def test_tokens_that_are_mixed_up_are_refused_or_answered(tmp_path, seed):
    found = outcomes(tmp_path, seed, by_tokens, 300)
    assert found["answered"] > 5 and found["SqlSyntaxError"] > 50


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_other_statements_are_refused_or_answered(tmp_path, seed):
    found = outcomes(tmp_path, seed, by_nodes, 150)
    assert found["answered"] > 5 and found["UnsupportedSql"] > 50


def test_a_lowering_that_stumbles_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(row_expressions.compare, "compare", lambda op, left, right: {}[op])
    with pytest.raises(KeyError):
        outcomes(tmp_path, 0, by_nodes, 100)


def test_a_charge_before_the_refusal_is_noticed(tmp_path, monkeypatch):
    honest, counted = sf.Session.query, iter(range(10**6))

    def query(session, text, **price):
        honest(session, COUNT, epsilon=Fraction(1, 10**6 + next(counted)))
        return honest(session, text, **price)

    monkeypatch.setattr(sf.Session, "query", query)
    with pytest.raises(AssertionError, match="charged and refused"):
        outcomes(tmp_path, 1, by_tokens, 50)


if __name__ == "__main__":
    end, total = time.monotonic() + float(sys.argv[1]), Counter()
    for turn in range(10**9):
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as place:
            total += outcomes(Path(place), time.time_ns(), (by_tokens, by_nodes)[turn % 2], 500)
    print(total)
