# SPDX-License-Identifier: Apache-2.0
"""Texts as bags of buckets: against plain Python, on neighbours, and in models; with a mutant."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.engines.base import RowTokens
from sfumato.errors import InvalidDeclaration, MissingDeclaration, SfumatoError, WrongUse
from sfumato.learning.bag import Bag, row_tokens
from sfumato.learning.examples import (
    Classes,
    ExampleSums,
    Reading,
    Residuals,
    Targets,
)
from sfumato.learning.features import Bagged, Features
from sfumato.plan.rows import MISSING
from sfumato.privacy.distance import Norm
from tests.learning.bags import BAG, REST, ROWS, WEIGHTS, WORDS, exact, sums


def expected(tokens: list[str], bag: Bag) -> list[int]:
    buckets = sorted({bag.bucket(token) for token in list(dict.fromkeys(tokens))[: bag.most]})
    return buckets + [MISSING] * (bag.most - len(buckets))


def test_codes_are_the_different_buckets_of_the_first_different_tokens() -> None:
    texts = [list(each) for size in range(6) for each in itertools.product(WORDS, repeat=size)]
    for bag in (BAG, Bag(2, 2), Bag(4096, 64)):
        codes = bag.codes(row_tokens(texts), 0, len(texts))
        assert codes.tolist() == [expected(tokens, bag) for tokens in texts]
        # some rows have the codes that they have among all
        assert (bag.codes(row_tokens(texts), 5, 99) == codes[5:99]).all()


def test_half_an_emoji_and_no_rows_are_no_error() -> None:
    assert BAG.codes(row_tokens([["\ud83d"]]), 0, 1)[0, 0] == BAG.bucket("\ud83d")
    assert BAG.codes(row_tokens([]), 0, 0).shape == (0, 3)


@pytest.mark.parametrize("sizes", [(1, 3), (2**21, 3), (3, 0), (3, 2000), (3.0, 3), (True, 3)])
def test_other_bags_are_refused(sizes: Any) -> None:
    with pytest.raises(InvalidDeclaration, match="of a bag"):
        Bag(*sizes)


def test_weights_are_one_column_at_most_in_l2() -> None:
    bagged = Bagged("note", Bag(100, 64))
    for count in range(65):
        codes = np.array([[*range(count), *[MISSING] * (64 - count)]])
        at, weight = bagged.places(codes)
        used = weight[0] > 0
        whole = max(count, 1)
        assert set(weight[0][used].tolist()) == {int(64 / whole**0.5)} and used.sum() == whole
        assert at[0][used].tolist() == (list(range(count)) or [100])
        assert (weight.astype(int) ** 2).sum() <= 64**2
        assert weight.astype(int).sum() <= bagged.farthest


READINGS = [Classes(2), Targets(), Residuals(WEIGHTS, logistic=True)]


def farthest(statistic: ExampleSums, *, replaced: bool, size: int) -> int:
    """How far any rows of one unit move the sums; from any other rows if it is replaced."""
    chosen = [
        [{"who": "a", **row} for row in some]
        for count in range(size + 1)
        for some in itertools.combinations_with_replacement(ROWS, count)
    ]
    base = exact(statistic, REST)
    moved = [exact(statistic, [*rows, *REST]) - base for rows in chosen]
    pairs = itertools.combinations(moved, 2) if replaced else ((each, 0 * each) for each in moved)
    power = 1 if statistic.norm is Norm.L1 else 2
    return max(int((np.abs(one - other) ** power).sum()) for one, other in pairs)


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: type(reading).__name__)
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_sums_of_bags_move_by_at_most_their_proved_distance(reading: Reading, norm: Norm) -> None:
    for relation, most in itertools.product((sf.AddRemove, sf.ReplaceOne), (1, 2)):
        statistic = sums(reading, norm, most, relation)
        moved = farthest(statistic, replaced=relation is sf.ReplaceOne, size=min(most, 2))
        assert 0 < moved <= statistic.distance(norm).value


def test_two_tokens_of_one_bucket_counted_twice_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def repeated(bag: Bag, texts: RowTokens, first: int, last: int) -> Any:
        codes = np.full((last - first, bag.most), MISSING)
        for row, (begin, end) in enumerate(itertools.pairwise(texts.starts[first : last + 1])):
            strings = dict.fromkeys(texts.strings[each] for each in texts.numbers[begin:end])
            buckets = [bag.bucket(each) for each in strings][: bag.most]
            codes[row, : len(buckets)] = buckets
        return codes

    assert len({BAG.bucket(word) for word in WORDS}) < len(WORDS)
    monkeypatch.setattr(Bag, "codes", repeated)
    statistic = sums(Targets(), Norm.L2, 1, sf.AddRemove)
    assert farthest(statistic, replaced=False, size=1) > statistic.distance(Norm.L2).value


def test_what_a_row_adds_depends_on_its_own_text_alone() -> None:
    rows = [{"who": str(who), **row} for who, row in enumerate(ROWS)]
    for reading in READINGS:
        statistic = sums(reading, Norm.L2, 1, sf.AddRemove)
        apart = sum(exact(statistic, [row]) for row in rows)
        assert (exact(statistic, rows) == apart).all()


def made(count: int) -> pa.Table:
    """Notes in which those with red eyes are ill."""
    notes = ["red eye", "left ear", "眼 red", "ear hurts", "", None]
    return pa.table(
        {
            "note": [notes[each % 6] for each in range(count)],
            "age": [each % 90 for each in range(count)],
            "ill": [each % 6 in (0, 2) for each in range(count)],
        }
    )


@pytest.fixture
def session(tmp_path: Path) -> Any:
    columns: dict[str, Any] = {
        "note": sf.Text(tokens=sf.Tokens()),
        "plain": sf.Text(),
        "age": sf.Integer(0, 99),
        "ill": sf.Boolean(),
    }
    table = made(3000)
    table = table.append_column("plain", table["note"])
    budget = sf.Budget(1000, "1e-3")
    with sf.connect(
        {"t": sf.Table(table, columns=columns)},
        dataset="notes",
        budget=budget,
        ledger=tmp_path / "ledger.db",
    ) as opened:
        yield opened


FRAME = {"note": ["eye red", "ear", "眼"], "age": [1, 2, 3]}
SELECT = "SELECT note, age, ill FROM t"


@pytest.mark.parametrize("recipe", [ln.LogisticRegression(steps=20), ln.Additive(steps=20)])
def test_models_of_texts_predict_are_saved_and_are_scored(
    session: sf.Session, tmp_path: Path, recipe: Any
) -> None:
    model = ln.fit(session, recipe, SELECT, label="ill", rho="0.5")
    assert model.predict(FRAME) == ["True", "False", "True"]
    assert model.predict({"note": "red", "age": 4}) == ["True"]
    again = ln.fit(session, recipe, SELECT, label="ill", rho="0.5")
    assert again.charge == model.charge
    model.save(tmp_path / "ill.sfm")
    loaded: Any = ln.load(tmp_path / "ill.sfm")
    assert (loaded.predict_proba(FRAME) == model.predict_proba(FRAME)).all()
    # the label in another place
    select = "SELECT ill, note, age FROM t"
    assert ln.score(session, loaded, select, label="ill", rho="0.5").accuracy > 0.95
    chosen = ln.choose(session, [model, loaded], select, label="ill", epsilon=1)
    assert chosen.model.bag == Bag()
    assert model.curve("note").shape == (1, 4097)
    model.plot().save(tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text()
    assert "note" not in drawn and "age" in drawn


def test_a_number_is_predicted_from_a_text(session: sf.Session) -> None:
    recipe = ln.LogisticRegression(steps=20, bag=Bag(64, 8))
    model = ln.fit(session, recipe, "SELECT note, age FROM t", label="age", rho=1)
    statement = "SELECT note, age FROM t"
    within = ln.score_within(session, model, statement, label="age", within=50, epsilon=1)
    assert within.accuracy > 0.8
    with pytest.raises(WrongUse, match="no order"):
        model.plot()


OTHERS: list[Any] = [
    ln.NaiveBayes(), ln.Ridge(), ln.DecisionTree(), ln.Forest(), ln.KMeans(2), ln.PCA(1)
]  # fmt: skip


@pytest.mark.parametrize("recipe", OTHERS, ids=lambda recipe: type(recipe).__name__)
def test_other_recipes_refuse_a_text_by_name(session: sf.Session, recipe: Any) -> None:
    label = None if isinstance(recipe, ln.KMeans | ln.PCA) else "ill"
    statement = SELECT if label else "SELECT note, age FROM t"
    asked: dict[str, Any] = {"rho": 1} if isinstance(recipe, ln.PCA | ln.Ridge) else {"epsilon": 1}
    with pytest.raises(MissingDeclaration, match="'note' is a text") as refused:
        ln.fit(session, recipe, statement, label=label, **asked)
    # it has tokens already
    assert "Take one of these recipes" in refused.value.remedy


def test_what_reads_no_text_refuses_before_it_is_charged(session: sf.Session) -> None:
    before = session.balances
    recipe = ln.LogisticRegression()
    with pytest.raises(SfumatoError, match="epsilon"):
        ln.fit(session, recipe, SELECT, label="ill", epsilon=1)
    with pytest.raises(MissingDeclaration, match="plain"):
        ln.fit(session, recipe, "SELECT plain, ill FROM t", label="ill", rho=1)
    with pytest.raises(WrongUse, match="label"):
        ln.fit(session, recipe, SELECT, label="note", rho=1)
    with pytest.raises(WrongUse, match="bag="):
        ln.LogisticRegression(bag=64)  # type: ignore[arg-type]
    with pytest.raises(MissingDeclaration, match="note"):
        recipes = [recipe, ln.Additive(bag=Bag(64))]
        ln.tune(session, recipes, SELECT, label="ill", rho=1, delta="1e-5")
    with pytest.raises(WrongUse, match="one bag"):
        Features((Bagged("a", Bag(8)), Bagged("b", Bag(9))))
    assert session.balances == before


def test_damaged_files_are_no_models(session: sf.Session, tmp_path: Path) -> None:
    model = ln.fit(session, ln.Additive(steps=2), SELECT, label="ill", rho="0.1")
    model.save(tmp_path / "m.sfm")
    text = (tmp_path / "m.sfm").read_text()
    for old, new in [('"bag"', '"sack"'), ("4096", "4095"), ('"stop": []', '"stop": "the"')]:
        assert old in text
        (tmp_path / "bad.sfm").write_text(text.replace(old, new, 1))
        with pytest.raises(WrongUse, match="no model"):
            ln.load(tmp_path / "bad.sfm")
    # the column in a shorter bag than the weights
    stored = json.loads(text)
    stored["columns"][0]["bag"] = [4096, 32]
    (tmp_path / "bad.sfm").write_text(json.dumps(stored))
    with pytest.raises(WrongUse, match="no model"):
        ln.load(tmp_path / "bad.sfm")
