# SPDX-License-Identifier: Apache-2.0
"""What enters the ledger as a request, and what does not."""

import json
import random
import string
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato.ledger.request as module
from sfumato.accounting.budget_gates import Charge
from sfumato.errors import BudgetExceeded, InvalidNumber, WrongUse
from sfumato.ledger import Ledger, verify
from sfumato.ledger.request import Ready
from sfumato.ledger.store.base import RESERVED
from sfumato.metadata.contract import Contract
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Budget, Composed, Distance, Norm
from tests.contracts.charges import charges, entries, head, opened, paid, pure


def test_a_request_is_priced_by_its_event() -> None:
    assert Ready.of(pure("0.1")).cost == Charge(10**11, 5 * 10**9, 0)
    assert Ready.of(pure("0.1")).relations == {"add-remove"}


def test_a_request_without_a_purpose_says_so() -> None:
    assert pure("0.1").scope.id == "d/unstated/owner"


def test_the_charge_of_a_request_tells_all_of_it() -> None:
    request = replace(pure("0.1"), purpose="research", shared="any", key="k")
    row = Ready.of(request).row("c", 7)
    assert (row.id, row.chain, row.seq, row.dataset) == ("c", "d", 7, "d")
    assert (row.account, row.analyst, row.state) == ("d/research/owner", "owner", RESERVED)
    assert (row.question, row.statement, row.shared) == ("q", "statement of q", "any")


def test_the_hash_of_a_request_depends_on_who_asks_what_and_not_on_its_key_or_on_what_is_left_to_pay() -> (
    None
):
    request = replace(pure("0.1"), key="k", shared="any")
    changes = ({"analyst": "bob"}, {"purpose": "ads"}, {"question": "r"}, {"statement": "s"})
    others = [replace(request, **change) for change in changes]
    hashes = {Ready.of(each).hash for each in others}
    assert len(hashes) == len(others)
    assert Ready.of(request).hash not in hashes
    assert Ready.of(replace(request, key="another")).hash == Ready.of(request).hash
    assert Ready.of(replace(pure("0.05"), key="k", shared="")).hash == Ready.of(request).hash


def test_the_journal_is_told_of_a_key_only_where_there_is_one() -> None:
    assert "key" not in Ready.of(pure("0.1")).body("c")
    assert Ready.of(replace(pure("0.1"), key="k")).body("c")["key"] == "k"


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: ""} for name in ("question", "analyst", "purpose", "dataset")),
        *(
            {"key": "a\nb"},
            {"statement": 3},
            {"question": "\ud800"},
            {"analyst": "a\0"},
            {"shared": None},
        ),
    ],
)
def test_what_cannot_be_stored_is_no_request(wrong: dict[str, object]) -> None:
    with pytest.raises(WrongUse):
        replace(pure("0.1"), **wrong)


TOO_LONG = [
    *({name: "n" * 201} for name in ("analyst", "purpose", "dataset")),
    *({name: "k" * 256} for name in ("key", "question", "statement", "shared")),
    *({"analyst": "数" * 67}, {"key": "数" * 86}),
]


@pytest.mark.parametrize("wrong", TOO_LONG)
def test_what_is_too_long_for_one_store_is_refused_by_both(wrong: dict[str, str]) -> None:
    (text,) = wrong.values()
    longest = 200 if set(wrong) & {"analyst", "purpose", "dataset"} else 255
    with pytest.raises(
        WrongUse, match=f"has {len(text.encode())} bytes.*\\n.*at most {longest} bytes"
    ):
        replace(pure("0.1"), **wrong)


def test_the_longest_names_and_keys_are_stored_and_found_again(place: str) -> None:
    dice = random.Random(7)

    def text(length: int) -> str:
        return "".join(dice.choices("/%" + string.ascii_letters + string.digits, k=length))

    ledger = Ledger.open(place)
    dataset, purpose, analyst = (text(200) for _ in range(3))
    ledger.adopt(Contract(dataset, "add-remove", {"t": "(row)"}, "1", "0"), Budget(1))
    keys = {name: text(255) for name in ("key", "question", "statement", "shared")}
    request = replace(pure("0.1"), dataset=dataset, purpose=purpose, analyst=analyst, **keys)
    charge = ledger.reserve(request)
    ledger.execute(charge)
    ledger.commit(charge, b"answer")
    assert ledger.recall(request) == b"answer"
    assert [row.account for row in charges(ledger)] == [request.scope.id]
    assert verify(ledger).problems == ()
    ledger.close()


def test_owners_acts_take_no_longer_names_either(place: str) -> None:
    ledger = opened(place)
    before = head(ledger)
    long = "n" * 201
    for act in (
        lambda: ledger.adopt(Contract(long, "add-remove", {"t": "(row)"}, "1", "0"), Budget(1)),
        lambda: ledger.allocate("d", Budget(1), purpose=long),
        lambda: ledger.refresh("d", Budget(1), purpose="p", analyst=long, reason="a new month"),
        lambda: ledger.freeze("d", analyst=long, purpose="p"),
        lambda: ledger.thaw(long),
        lambda: ledger.share_answers(long, allowed=True),
    ):
        with pytest.raises(WrongUse, match="has 201 bytes"):
            act()
    assert (head(ledger), [each.scope.id for each in ledger.accounts()]) == (before, ["d"])
    ledger.close()


@pytest.mark.parametrize(
    "scale", ["nan", "inf", "-1", "0", "5e-324x", 1e400, float("nan"), float("inf"), -1, 0]
)
def test_a_cost_that_is_no_number_never_becomes_a_request(scale: object) -> None:
    with pytest.raises(InvalidNumber):
        AdditiveNoise(DiscreteLaplace(scale), Distance(Norm.L1, Fraction(1)))


def test_a_charge_of_nothing_is_refused(tmp_path) -> None:
    ledger = opened(tmp_path / "l.db")
    before = head(ledger)
    with pytest.raises(InvalidNumber, match="A charge of nothing"):
        ledger.reserve(replace(pure("0.1"), event=Composed(())))
    assert head(ledger) == before


@pytest.mark.parametrize("epsilon", [2**63, 10**30, 2**64 + 1, "1e400"])
def test_a_cost_beyond_every_machine_integer_is_refused_as_too_much(
    tmp_path, epsilon: object
) -> None:
    ledger = opened(tmp_path / "l.db")
    before = head(ledger)
    with pytest.raises(BudgetExceeded, match="epsilon=1 left"):
        ledger.reserve(pure(epsilon))
    assert (head(ledger), charges(ledger)) == (before, [])


@pytest.mark.parametrize("epsilon", ["5e-324", "1e-400", "1e-13"])
def test_a_cost_below_an_increment_is_charged_a_whole_increment(tmp_path, epsilon: str) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.reserve(pure(epsilon))
    assert (ledger.balance("d").reserved.epsilon, ledger.balance("d").reserved.rho) == (1, 1)


def test_a_ledger_knows_nothing_of_a_request_that_was_only_built(tmp_path) -> None:
    ledger: Ledger = opened(tmp_path / "l.db")
    before = head(ledger)
    Ready.of(pure("0.1"))
    assert head(ledger) == before


def test_an_event_is_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    priced: list[object] = []
    price = module.price

    def counted(event: object, orders: object) -> Charge:
        priced.append(event)
        return price(event, orders)

    monkeypatch.setattr(module, "price", counted)
    module._priced.cache_clear()
    asked = [Ready.of(pure("0.07", f"q{number}")) for number in range(3)]
    assert len(priced) == 1
    assert {each.cost for each in asked} == {Charge(7 * 10**10, 245 * 10**7, 0)}
    assert Ready.of(pure("0.08")).cost != asked[0].cost


@pytest.mark.parametrize("kind", ["", "SQL", "two words", "1st", "a" * 31, "with-dash"])
def test_a_kind_is_a_plain_word(kind: str) -> None:
    with pytest.raises(WrongUse, match="kind="):
        replace(pure("0.1"), kind=kind)


def test_a_line_for_people_is_short_and_printable_and_in_the_journal_alone(tmp_path: Path) -> None:
    for line in ("two\nlines", "x" * 1001):
        with pytest.raises(WrongUse):
            replace(pure("0.1"), line=line)
    ledger = opened(tmp_path / "l.db")
    paid(ledger, replace(pure("0.1"), kind="marginals", line="by age, sex"))
    paid(ledger, pure("0.1", "other"))
    first, second = (json.loads(entry.body) for entry in entries(ledger) if entry.kind == "reserve")
    assert (first["kind"], first["line"]) == ("marginals", "by age, sex")
    assert not {"kind", "line"} & set(second)
