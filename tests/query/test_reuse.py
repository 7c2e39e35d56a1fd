# SPDX-License-Identifier: Apache-2.0
"""What was released before is read again: only where it is the same release, and no less exact."""

import sys
from fractions import Fraction
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, KeyUsed
from sfumato.exact.rational import decimal_text
from sfumato.mechanisms.additive import gaussian, laplace
from sfumato.mechanisms.grid import grid_quantiles
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.answer import Answer
from sfumato.query.estimate import Kind, Reading, Released
from sfumato.query.reuse import is_as_exact
from sfumato.query.session import Session
from sfumato.query.table import load_body
from tests.contracts.people import session

ROOM = sys.modules["sfumato.query.reuse"]
COUNTED = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
ROLLED = "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)"
BOTH = "SELECT sex, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY sex"


def spent(asked: Session) -> Fraction:
    """What the pure gate has booked."""
    return Fraction(asked.budget.spent)


def counts(answer: Answer) -> list[object]:
    """The column n."""
    place = [column["name"] for column in answer.columns].index("n")
    return [row[place] for row in answer.rows]


def test_what_is_stored_already_is_not_charged(tmp_path: Path) -> None:
    with session(tmp_path) as asked:
        first = asked.query(COUNTED, epsilon=1)
        preview = asked.preview(BOTH, epsilon=1)
        answer = asked.query(BOTH, epsilon=1)
        (count, mean) = answer.cost.items
        assert counts(answer) == counts(first)
        assert (count["mechanism"], count["epsilon"]) == ("read from an earlier answer", "0")
        assert 0 < Fraction(mean["epsilon"]) < 1
        assert spent(asked) == 1 + Fraction(mean["epsilon"])
        assert preview.cost == answer.cost
        assert (
            f"COUNT(*) was released before (charge {first.charge_id[:12]}) and is read again"
            in str(answer.notes)
        )
        assert asked.query(BOTH, epsilon=1).bytes == answer.bytes
        assert asked.verify().problems == ()


def test_a_question_of_stored_parts_alone_is_free_and_goes_on_to_be_the_same(
    tmp_path: Path,
) -> None:
    others = ["COUNT(*) AS persons", "COUNT(*) + 1 AS more", "COUNT(*) AS n, -COUNT(*) AS less"]
    texts = [COUNTED.replace("COUNT(*) AS n", other) for other in others]
    texts += [f"{COUNTED} HAVING COUNT(*) > 10", f"{COUNTED} ORDER BY n LIMIT 1", ROLLED]
    with session(tmp_path) as asked:
        first = asked.query(COUNTED, epsilon=1)
        free = [asked.query(text, epsilon="0.5").bytes for text in texts]
        assert {Answer(body).charge_id for body in free} == {first.charge_id}
        assert {Answer(body).cost.epsilon for body in free} == {"0"}
        # a later and more exact release does not change what was said
        asked.query(COUNTED, epsilon=2)
        assert [asked.query(text, epsilon="0.5").bytes for text in texts] == free
        assert spent(asked) == 3
    with session(tmp_path) as asked:
        assert asked.query(texts[0], epsilon="0.5").bytes == free[0]


def test_a_sum_over_groups_is_made_of_the_stored_groups(tmp_path: Path) -> None:
    with session(tmp_path) as asked:
        first = asked.query(COUNTED, epsilon=1)
        rolled = asked.query(ROLLED, epsilon=1)
        assert counts(rolled) == [*counts(first), sum(map(int, map(str, counts(first))))]
        # the rows of grouping sets are sums: they are not taken apart
        asked.query("SELECT smoker, COUNT(*) AS n FROM people GROUP BY ROLLUP (smoker)", epsilon=1)
        asked.query("SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker", epsilon=1)
        assert spent(asked) == 3


@pytest.mark.parametrize(
    ("sql", "price"),
    [
        (COUNTED, {"epsilon": 2}),
        (COUNTED, {"rho": "0.01"}),
        (f"{COUNTED.replace(' GROUP', ' WHERE age > 21 GROUP')}", {"epsilon": "0.5"}),
        (COUNTED.replace("COUNT(*)", "COUNT(hours)"), {"epsilon": "0.5"}),
        (COUNTED.replace("sex", "smoker"), {"epsilon": "0.5"}),
        ("SELECT COUNT(*) AS n FROM people", {"epsilon": "0.5"}),
    ],
)
def test_another_release_is_paid_for(tmp_path: Path, sql: str, price: dict[str, object]) -> None:
    with session(tmp_path) as asked:
        first = asked.query(COUNTED, epsilon=1)
        other = asked.query(sql, **price)
        assert other.charge_id != first.charge_id
        assert not any("read again" in note for note in other.notes)


@pytest.mark.parametrize("option", [{"version": "2"}, {"analyst": "guest"}])
def test_another_version_or_analyst_is_another_release(
    tmp_path: Path, option: dict[str, str]
) -> None:
    with session(tmp_path) as asked:
        first = asked.query(COUNTED, epsilon=1)
    with session(tmp_path, **option) as asked:
        assert asked.query(COUNTED, epsilon="0.5").charge_id != first.charge_id


def limited(tmp_path: Path, max_rows: int) -> Answer:
    """The count under a limit of rows, below a question under another one."""
    import sfumato as sf

    unit = sf.Unit("person", max_rows=max_rows, max_groups=1)
    folder = tmp_path / str(max_rows)
    folder.mkdir()
    with session(folder, unit=unit) as asked:
        return asked.query(COUNTED, epsilon=1)


def test_a_part_under_other_bounds_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [limited(tmp_path, rows).form["parts"] for rows in (1, 2)]
    assert keys[0] != keys[1]
    with session(tmp_path) as asked:
        asked.query(COUNTED, epsilon=1)
        # a key that forgets the relation below the aggregate
        monkeypatch.setattr(
            "sfumato.query.release.Asker.part_forms",
            lambda asker, bounded, _: [str(each) for each in bounded.parts],
        )
        smokers = COUNTED.replace("sex", "smoker")
        asked.query(smokers, epsilon=1)
        mixed = asked.query(smokers.replace("FROM people", "FROM people WHERE age > 30"), epsilon=1)
        assert mixed.cost.epsilon == "0", "a forgetful key is noticed"


def released(mechanism: object) -> Released:
    """What a mechanism has released, but for the numbers."""
    noise, rates = getattr(mechanism, "noise", None), getattr(mechanism, "rates", ())
    return Released("", Reading(Kind.NUMBER, Fraction(1)), noise, ((1,),), (1,), rates)


ONE = {norm: Distance(norm, Fraction(1)) for norm in Norm}
COSTS = st.fractions("0.001", 10)
MAKERS = (
    lambda cost: laplace(ONE[Norm.L1], cost),
    lambda cost: gaussian(ONE[Norm.L2], cost),
    lambda cost: grid_quantiles(ONE[Norm.LINF], 1, cost, (Fraction(1, 2),)),
)


@given(st.sampled_from(MAKERS), st.sampled_from(MAKERS), COSTS, COSTS)
def test_a_stored_part_has_no_more_noise_than_was_asked_for(one, other, paid, asked) -> None:
    assert is_as_exact(released(one(paid)), other(asked)) == (one is other and paid >= asked)


def test_the_edge_of_a_budget_is_no_edge_for_what_is_stored(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as asked:
        first = asked.query(COUNTED, epsilon=1)
        assert counts(
            asked.query(COUNTED.replace("COUNT(*) AS n", "COUNT(*) AS n, sex AS s"), epsilon=1)
        ) == counts(first)
        with pytest.raises(BudgetExceeded):
            asked.query(BOTH, epsilon=1)


def test_a_key_of_another_request_is_refused_for_what_is_free_too(tmp_path: Path) -> None:
    with session(tmp_path) as asked:
        asked.query(COUNTED, epsilon=1, key="k")
        mixed = asked.query(BOTH, epsilon=1, key="m")
        assert asked.query(BOTH, epsilon=1, key="m").bytes == mixed.bytes
        with pytest.raises(KeyUsed):
            asked.query(COUNTED, epsilon="0.5", key="k")


def test_an_answer_with_a_part_that_was_paid_elsewhere_is_not_shared_for_the_price_of_the_rest(
    tmp_path: Path,
) -> None:
    with session(tmp_path, analyst="ann") as asked:
        asked.query(COUNTED, epsilon=1)
        first = asked.query(BOTH, epsilon=1)
        asked._ledger.share_answers("tiny", allowed=True)
    with session(tmp_path, analyst="bob") as asked:
        before = asked._ledger.standing("tiny").spent.epsilon
        answer = asked.query(BOTH, epsilon=1)
        assert answer.bytes != first.bytes
        assert asked._ledger.standing("tiny", "unstated", "bob").spent.epsilon == 10**12
        assert asked._ledger.standing("tiny").spent.epsilon == before + 10**12


def test_an_index_that_lies_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(tmp_path) as asked:
        asked.query(COUNTED, epsilon=1)
        asked.query("SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker", epsilon=1)
    connection = apsw.Connection(str(tmp_path / "ledger.db"))
    (one, other) = (row[0] for row in connection.execute("SELECT charge FROM part ORDER BY seq"))
    connection.execute("UPDATE part SET charge = ? WHERE charge = ?", (one, other))
    connection.close()
    (tmp_path / "ledger.db.head").unlink()
    with session(tmp_path) as asked:
        assert asked.verify().problems == ("the parts of answers are not those of the journal",)
        again = asked.query("SELECT smoker, COUNT(*) AS k FROM people GROUP BY smoker", epsilon=1)
        assert again.cost.epsilon == decimal_text(Fraction(1))
        assert asked.query(COUNTED.replace("n FROM", "k FROM"), epsilon=1).cost.epsilon == "0"


def test_a_reader_that_believes_the_index_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = ROOM._part
    monkeypatch.setattr(ROOM, "_part", lambda body, key: honest(body, load_body(body)["parts"][0]))
    with pytest.raises((AssertionError, IndexError)):
        test_an_index_that_lies_leads_nowhere(tmp_path, monkeypatch)


def test_groups_that_are_not_public_are_paid_for_each_time(tmp_path: Path) -> None:
    sql = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"
    with session(tmp_path) as asked:
        first = asked.query(sql, epsilon=1, delta="1e-7")
        assert (
            asked.query(sql.replace("AS n", "AS k"), epsilon=1, delta="1e-7").charge_id
            != first.charge_id
        )
        assert first.form["parts"] == ["", ""][: len(first.cost.items)]


def test_what_was_told_before_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    honest = ROOM._part
    monkeypatch.setattr(ROOM, "_part", lambda body, key: read.append(body) or honest(body, key))
    with session(tmp_path) as asked:
        charges = {asked.query(COUNTED, epsilon=f"0.{price}").charge_id for price in range(10, 20)}
    assert len(charges) == 10
    assert len(read) == len(set(read)) == 9
    # as many as were forgotten are read again
    monkeypatch.setattr(ROOM, "_REMEMBERED", 1)
    del read[:]
    with session(tmp_path) as asked:
        asked.query(COUNTED, epsilon="0.3")
        asked.query(COUNTED, epsilon="0.4")
    assert len(read) == 10 + 11
