# SPDX-License-Identifier: Apache-2.0
"""What every store owes the ledger: inherit, and give ``open_store``."""

import random
import threading
from collections.abc import Callable, Iterator

import pytest

from sfumato.errors import LedgerCorrupt, LedgerError, LedgerUnavailable
from sfumato.ledger.journal import Entry, chained, genesis
from sfumato.ledger.store.base import (
    COMMITTED,
    COUNTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    SUSPENDED,
    VOIDED,
    AccountRow,
    AnswerRow,
    ChargeRow,
    Counts,
    InstalmentRow,
    KeyRow,
    PartRow,
    Rows,
    Store,
)

ACCOUNT = AccountRow(
    "d", "", '{"c":1}', '{"l":1}', '{"g":1}', '{"s":0}', '{"h":0}', "", "{}", "[]", 1, "head", "d"
)
BELOW = AccountRow("d/p", "d", "", "", "", '{"s":0}', '{"h":0}', "", "", "[]", 0, "", "d/p")
CHARGE = ChargeRow(
    *("c1", "d", 2, "d", "d/p/a", "a", RESERVED, "q1", "s1", "any1", '{"e":1}', "", "", 1_000),
)
ANSWER = AnswerRow("q1", "s1", "any1", "c1", b"\x00first")
KEY = KeyRow("d/p/a", "k", "hash", "c1", "d", 2)


class Boom(Exception):
    """What a transaction raises of itself."""


def another(number: int, state: str = RESERVED, **changes: object) -> ChargeRow:
    """A charge with names and an entry of its own."""
    fresh = CHARGE._replace(id=f"c{number}", seq=number + 1, question=f"q{number}", state=state)
    return fresh._replace(**changes)


def chain_of(name: str, length: int) -> list[Entry]:
    """A whole chain."""
    entries: list[Entry] = []
    for seq in range(1, length + 1):
        previous = entries[-1].hash if entries else genesis(name)
        entries.append(chained(name, seq, "now", "thaw", {"n": seq}, previous))
    return entries


def put(store: Store, *rows: object) -> None:
    """Rows of any kind, in one transaction."""

    def transaction(target: Rows) -> None:
        target.lock(["d"])
        for row in rows:
            {
                AccountRow: target.put_account,
                ChargeRow: target.put_charge,
                AnswerRow: target.put_answer,
                KeyRow: target.put_key,
                InstalmentRow: target.put_instalment,
                PartRow: lambda part: target.put_parts([part]),
                Entry: target.append,
            }[type(row)](row)

    store.write(transaction)


class LedgerStoreContract:
    """The suite. ``open_store`` opens the same place each time."""

    @pytest.fixture
    def stores(self, open_store: Callable[[], Store]) -> Iterator[Callable[[], Store]]:
        """Opens stores, and closes what a test leaves open."""
        opened: list[Store] = []

        def more() -> Store:
            opened.append(open_store())
            return opened[-1]

        yield more
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, stores: Callable[[], Store]) -> Store:
        """A store with one account and one charge."""
        store = stores()
        put(store, ACCOUNT, CHARGE)
        return store

    def test_a_listener_hears_of_the_last_entry_of_what_is_stored(self, store: Store) -> None:
        first, second, third = chain_of("d", 3)
        heard: list[tuple[int, str]] = []
        store.remember(lambda seq, digest: heard.append((seq, digest)))
        put(store, first, second, ACCOUNT._replace(seq=2, head=second.hash))
        assert heard == [(2, second.hash)]

        def undone(rows: Rows) -> None:
            rows.append(third)
            rows.put_account(ACCOUNT._replace(seq=3, head=third.hash))
            raise Boom

        with pytest.raises(Boom):
            store.write(undone)
        store.write(lambda rows: rows.put_about("n", "no entry"))
        assert heard == [(2, second.hash)]

    def test_what_a_store_notes_of_itself_is_kept(self, stores: Callable[[], Store]) -> None:
        store = stores()
        assert store.read(lambda rows: rows.about("n")) == ""
        for value in ("one", "two", ""):
            store.write(lambda rows, value=value: rows.put_about("n", value))
            assert store.read(lambda rows: rows.about("n")) == value
        store.write(lambda rows: rows.put_about("n", "kept"))

        def undone(rows: Rows) -> None:
            rows.put_about("n", "lost")
            assert rows.about("n") == "lost"
            raise Boom

        with pytest.raises(Boom):
            store.write(undone)
        store.close()
        assert stores().read(lambda rows: rows.about("n")) == "kept"

    def test_an_empty_store_holds_nothing(self, stores: Callable[[], Store]) -> None:
        store = stores()

        def everything(rows: Rows) -> list[object]:
            lists = (rows.accounts(), rows.history(), rows.keys(), rows.entries("d"))
            found = [*rows.chains(), *(item for each in lists for item in each)]
            singles = (
                rows.account("d"),
                rows.charge("c1"),
                rows.answer("q1"),
                rows.first_answer("s1", "d/p/a"),
            )
            more = (
                rows.shared_answer("any1"),
                rows.key("d", "k"),
                rows.under_way("q1"),
                rows.last_entry("d"),
            )
            assert rows.counts() == Counts(0, 0, 0, 0, 0, 0)
            assert rows.overdue(None, 9) == rows.failures("d") == []
            return [
                *found,
                *(item for item in (*singles, *more, rows.entry("d", 1)) if item is not None),
            ]

        assert store.read(everything) == []
        assert store.peek("d") is None

    def test_rows_come_back_as_they_went_in(self, store: Store) -> None:
        put(store, BELOW, CHARGE._replace(state=COMMITTED), ANSWER, KEY)
        assert store.peek("d") == store.read(lambda rows: rows.account("d")) == ACCOUNT
        assert store.read(lambda rows: list(rows.accounts())) == [ACCOUNT, BELOW]
        paid = CHARGE._replace(state=COMMITTED)
        assert store.read(lambda rows: rows.charge("c1")) == paid
        assert store.read(lambda rows: list(rows.history())) == [(paid, ANSWER)]
        assert store.read(lambda rows: rows.key("d/p/a", "k")) == KEY
        assert store.read(lambda rows: list(rows.keys())) == [KEY]
        assert store.read(lambda rows: rows.counts()) == Counts(2, 1, 1, 1, 0, 0)

    def test_parts_lead_to_the_answers_that_released_them_in_their_order(
        self, store: Store
    ) -> None:
        others = [another(number, COMMITTED) for number in (2, 3)]
        put(store, CHARGE._replace(state=COMMITTED), *others, ANSWER)
        put(store, *(ANSWER._replace(question=each.question, charge=each.id) for each in others))
        named = (
            ("空", "c3", "d", 9),
            ("空", "c1", "d", 5),
            ("q", "c1", "d", 5),
            ("空", "c2", "e", 1),
        )
        rows = [PartRow(*each) for each in named]
        store.write(lambda target: target.put_parts(rows))
        store.write(lambda target: target.put_parts([]))
        found = store.read(lambda target: [row.charge for row in target.released("空", "d/p/a")])
        assert found == ["c1", "c3", "c2"]
        assert store.read(lambda target: target.released("q", "d/p/a")) == [ANSWER]
        assert store.read(lambda target: target.released("", "d/p/a")) == []
        assert store.read(lambda target: list(target.parts())) == [
            rows[2],
            rows[1],
            rows[0],
            rows[3],
        ]
        assert store.read(lambda target: target.counts()).parts == 4
        with pytest.raises(LedgerCorrupt):
            put(store, rows[0])

    def test_instalments_come_by_their_places_with_the_entries_that_appended_them(
        self, store: Store
    ) -> None:
        entries = chain_of("d", 6)
        first, second = (
            InstalmentRow("c1", 1, b"one", "d", 4),
            InstalmentRow("c1", 9, bytes(9000), "d", 6),
        )
        other = InstalmentRow("c2", 2, b"", "d", 5)
        put(store, CHARGE, another(2), second, other, first, *entries)
        found = store.read(lambda rows: rows.instalments("c1", 0, 9))
        assert found == [(first, entries[3]), (second, entries[5])]
        assert store.read(lambda rows: rows.instalments("c1", 1, 9)) == found[1:]
        assert store.read(lambda rows: rows.instalments("c1", 0, 1)) == found[:1]
        assert store.read(lambda rows: list(rows.all_instalments())) == [first, other, second]
        assert store.read(lambda rows: list(rows.all_instalments({"d": 4}))) == [other, second]
        assert store.read(lambda rows: rows.counts()).instalments == 3

    @pytest.mark.parametrize("second", [("c1", 1, 5), ("c2", 3, 4), ("nobody", 1, 5)])
    def test_an_instalment_is_there_once_and_of_a_charge(
        self, store: Store, second: tuple[str, int, int]
    ) -> None:
        charge, place, seq = second
        put(store, CHARGE, another(2), InstalmentRow("c1", 1, b"one", "d", 4))
        with pytest.raises(LedgerCorrupt):
            put(store, InstalmentRow(charge, place, b"two", "d", seq))

    def test_a_body_is_packed_before_its_unit_and_comes_back_whole(self, store: Store) -> None:
        plain, large = b"text " * 9000, bytes(range(256)) * 50
        answer = ANSWER._replace(body=plain, packed=store.pack(plain, 10**6))
        instalment = InstalmentRow("c1", 1, large, "d", 3, store.pack(large, 10**9))
        put(store, CHARGE, answer, instalment, *chain_of("d", 3))
        assert store.read(lambda rows: rows.answer("q1")) == ANSWER._replace(body=plain)
        assert store.read(lambda rows: list(rows.all_instalments())) == [
            instalment._replace(packed=None)
        ]

    def test_a_suspended_charge_is_under_way_and_never_overdue(
        self, store: Store, stores: Callable[[], Store]
    ) -> None:
        put(store, another(2, SUSPENDED, pieces="p", lease_until=0))
        for _ in range(2):
            found = store.read(lambda rows: rows.under_way("q2"))
            assert found is not None and (found.state, found.pieces) == (SUSPENDED, "p")
            assert [row.id for row in store.read(lambda rows: rows.overdue(None, 9))] == ["c1"]
            store.close()
            store = stores()

    def test_a_charge_that_went_on_after_a_failure_is_found_until_it_is_acknowledged(
        self, store: Store, stores: Callable[[], Store]
    ) -> None:
        rows = [
            another(number, state, failures=1)
            for number, state in enumerate((COMMITTED, SUSPENDED, EXECUTING), 2)
        ]
        both = another(6, FORFEITED, failures=1, reason=COUNTED[0])
        put(store, *rows, both, another(7, COMMITTED))
        for _ in range(2):
            assert store.read(lambda found: found.failed("d", "a")) == [*rows, both]
            assert store.read(lambda found: found.failures("d")) == [*rows, both]
            assert store.read(lambda found: found.failed("d", "b")) == []
            store.close()
            store = stores()
        put(
            store,
            *(row._replace(failures=0) for row in rows),
            both._replace(failures=0, acknowledged=1),
        )
        assert store.read(lambda found: [*found.failed("d", "a"), *found.failures("d")]) == []

    def test_names_and_numbers_of_every_kind_are_kept(self, store: Store) -> None:
        odd = "数据/%2F \U0001f4d6 'quoted\" \\ ;--"
        put(
            store,
            ACCOUNT._replace(id=odd, spent=str(2**200)),
            another(2, account=odd, lease_until=2**62),
        )
        put(store, AnswerRow("q2", odd, odd, "c2", bytes(range(256))))
        assert store.peek(odd) == ACCOUNT._replace(id=odd, spent=str(2**200))
        assert store.read(lambda rows: rows.charge("c2")) == another(
            2, account=odd, lease_until=2**62
        )
        assert store.read(lambda rows: rows.first_answer(odd, odd)) == AnswerRow(
            "q2", odd, odd, "c2", bytes(range(256))
        )

    def test_the_longest_names_and_keys_are_kept(self, store: Store) -> None:
        dice = random.Random(7)
        # nothing that a store could compress: the three longest names, quoted, and the longest keys
        name, key, *asked = (
            "".join(map(chr, dice.choices(range(33, 127), k=k))) for k in (1802, *[255] * 4)
        )
        put(
            store, BELOW._replace(id=name), another(2, account=name, dataset=name, chain=name[:600])
        )
        put(
            store,
            AnswerRow(*asked, "c2", b""),
            KEY._replace(account=name, key=key, chain=name[:600]),
        )
        put(store, chain_of(name[:600], 1)[0])
        assert store.read(lambda rows: rows.key(name, key)).chain == name[:600]
        assert store.read(
            lambda rows: [each and each.charge for each in map(rows.answer, asked)]
        ) == ["c2", None, None]
        assert store.peek(name) == BELOW._replace(id=name)

    def test_an_account_put_again_changes_all_but_its_place(self, store: Store) -> None:
        changed = AccountRow(
            "d", "", *("cc", "ll", "gg", "ss", "hh", "ff", "pp", "ee"), 7, "hash", "dd"
        )
        put(store, changed)
        assert store.peek("d") == store.read(lambda rows: rows.account("d")) == changed
        assert store.read(lambda rows: next(rows.accounts())) == changed

    def test_a_charge_put_again_changes_its_state_and_nothing_else(self, store: Store) -> None:
        put(
            store,
            CHARGE._replace(
                state=FORFEITED, reason="engine", lease_until=5, acknowledged=1, cost="x", seq=9
            ),
        )
        expected = CHARGE._replace(state=FORFEITED, reason="engine", lease_until=5, acknowledged=1)
        assert store.read(lambda rows: rows.charge("c1")) == expected

    def test_accounts_and_chains_come_by_code_points(self, store: Store) -> None:
        names = ["d/p", "d-p", "D", "é", "数", "d/p/a", "d.", "\U0001f4d6", "e"]
        put(
            store,
            *(BELOW._replace(id=name) for name in names),
            *(chain_of(name, 1)[0] for name in names),
        )
        assert store.read(lambda rows: [row.id for row in rows.accounts()]) == sorted([*names, "d"])
        assert store.read(lambda rows: rows.chains()) == sorted(names)

    def test_a_unit_sees_what_it_wrote(self, store: Store) -> None:
        def transaction(rows: Rows) -> None:
            held = rows.lock(["d", "d/p"])
            assert held == {"d": ACCOUNT}
            rows.put_account(ACCOUNT._replace(spent="more"))
            rows.put_account(BELOW)
            rows.put_charge(another(2, EXECUTING))
            rows.append(chain_of("d", 1)[0])
            assert rows.account("d") == ACCOUNT._replace(spent="more")
            assert rows.lock(["d/p", "d"]) == {"d": ACCOUNT._replace(spent="more"), "d/p": BELOW}
            assert [row.id for row in rows.accounts()] == ["d", "d/p"]
            assert rows.under_way("q2") == rows.charge("c2") == another(2, EXECUTING)
            assert rows.last_entry("d") == chain_of("d", 1)[0]
            assert rows.counts() == Counts(2, 2, 0, 0, 0, 1)

        store.write(transaction)

    def test_what_is_read_ahead_is_read_under_the_locks_and_again_after_a_write(
        self, store: Store
    ) -> None:
        def transaction(rows: Rows) -> None:
            def ahead() -> None:
                rows.charge("c1"), rows.answer("q1"), rows.failures("d"), rows.key("d/p/a", "k")

            for ids in (["d"], ["d", "d/p"]):  # the second is not there
                assert rows.lock(ids, ahead) == {"d": ACCOUNT}
                assert (rows.charge("c1"), rows.answer("q1"), rows.key("d/p/a", "k")) == (
                    CHARGE,
                    None,
                    None,
                )
            rows.lock(["d"], ahead)
            rows.put_charge(CHARGE._replace(state=FORFEITED))
            rows.put_answer(ANSWER)
            rows.put_key(KEY)
            assert (rows.charge("c1"), rows.answer("q1")) == (
                CHARGE._replace(state=FORFEITED),
                ANSWER,
            )
            assert (rows.key("d/p/a", "k"), rows.failures("d")) == (
                KEY,
                [CHARGE._replace(state=FORFEITED)],
            )

        store.write(transaction)

    def test_a_unit_that_waited_for_its_locks_reads_what_the_other_wrote(
        self, store: Store
    ) -> None:
        """However the reads of eight transactions are sent, each sees all charges of those before it."""
        found = []

        def run(number: int) -> None:
            def transaction(rows: Rows) -> int:
                last = [
                    each for each in range(2, 10) if rows.charge(f"c{each}")
                ]  # before the lock: any number
                rows.lock(["d"], lambda: rows.overdue(None, 99))
                before = len(rows.overdue(None, 99))
                assert before > len(last)
                rows.put_charge(another(number))
                return before

            found.append(store.write(transaction))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(2, 10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == list(range(1, 9))

    def test_a_unit_that_fails_leaves_nothing_and_its_error_comes_out(self, store: Store) -> None:
        def transaction(rows: Rows) -> None:
            rows.lock(["d"])
            rows.put_account(ACCOUNT._replace(spent="lost"))
            rows.put_account(BELOW._replace(id="lost"))
            rows.put_charge(another(2))
            rows.put_answer(ANSWER)
            rows.put_key(KEY)
            rows.append(chain_of("d", 1)[0])
            raise Boom

        with pytest.raises(Boom):
            store.write(transaction)
        assert (store.peek("d"), store.peek("lost")) == (ACCOUNT, None)
        assert store.read(lambda rows: rows.counts()) == Counts(1, 1, 0, 0, 0, 0)

    def test_a_unit_may_fail_after_it_has_scanned_what_it_wrote(self, store: Store) -> None:
        def transaction(rows: Rows) -> None:
            rows.lock(["d"])
            rows.put_account(ACCOUNT._replace(spent="lost"))
            assert [row.spent for row in rows.accounts()] == ["lost"]
            raise Boom

        with pytest.raises(Boom):
            store.write(transaction)
        assert store.peek("d") == store.read(lambda rows: next(rows.accounts())) == ACCOUNT

    @pytest.mark.parametrize("late", [False, True])
    def test_units_that_fail_do_not_touch_those_beside_them(self, store: Store, late: bool) -> None:
        start, failed = threading.Barrier(16), []

        def run(number: int) -> None:
            def transaction(rows: Rows) -> None:
                row = rows.lock(["d"])["d"]
                rows.put_account(
                    row._replace(spent=str(int(row.spent if row.spent.isdigit() else 0) + 1))
                )
                rows.put_charge(another(number))
                if late:
                    # what it wrote so far has reached the tables
                    assert rows.counts().charges >= 2
                if number % 2:
                    raise Boom

            start.wait()
            try:
                store.write(transaction)
            except Boom:
                failed.append(number)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(2, 18)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(failed) == [number for number in range(2, 18) if number % 2]
        assert store.read(lambda rows: next(rows.accounts()).spent) == "8"
        assert store.read(lambda rows: rows.counts()).charges == 1 + 8

    def test_a_row_that_cannot_be_stored_undoes_its_own_unit_alone(self, store: Store) -> None:
        start, failed = threading.Barrier(8), []

        def run(number: int) -> None:
            def transaction(rows: Rows) -> None:
                row = rows.lock(["d"])["d"]
                rows.put_account(row._replace(seq=row.seq + 1))
                # the same place in the chain for two of them each
                rows.put_charge(another(number, chain="e", seq=number // 2))

            start.wait()
            try:
                store.write(transaction)
            except LedgerCorrupt:
                failed.append(number // 2)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(2, 10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(failed) == [1, 2, 3, 4]
        assert store.read(lambda rows: next(rows.accounts()).seq) == ACCOUNT.seq + 4
        assert store.read(lambda rows: rows.counts()).charges == 1 + 4

    def test_what_a_unit_gives_back_is_handed_to_its_caller(self, store: Store) -> None:
        assert store.write(lambda rows: rows.counts().charges + 41) == 42
        assert store.read(lambda rows: "text") == "text"

    def test_a_question_is_under_way_until_its_charge_ends(self, store: Store) -> None:
        assert store.read(lambda rows: rows.under_way("q1")) == CHARGE
        put(
            store,
            another(2, COMMITTED),
            another(3, VOIDED),
            another(4, FORFEITED),
            another(5, EXECUTING),
        )
        found = [store.read(lambda rows, n=n: rows.under_way(f"q{n}")) for n in range(2, 6)]
        assert found == [None, None, None, another(5, EXECUTING)]

    def test_ended_leases_are_found_oldest_first(self, store: Store) -> None:
        leases = {2: 30, 3: 10, 4: 20, 5: 5}
        put(store, *(another(n, EXECUTING, lease_until=until) for n, until in leases.items()))
        put(store, another(6, COMMITTED, lease_until=1), another(7, lease_until=10, dataset="e"))

        def ids(until: int | None, limit: int, dataset: str | None = None) -> list[str]:
            return [row.id for row in store.read(lambda rows: rows.overdue(until, limit, dataset))]

        assert ids(20, 9) == ["c5", "c3", "c7", "c4"]
        assert ids(20, 9, "d") == ["c5", "c3", "c4"]
        assert ids(20, 2) == ["c5", "c3"]
        assert ids(4, 9) == []
        assert ids(None, 9, "d") == ["c5", "c3", "c4", "c2", "c1"]

    def test_failures_are_found_until_they_are_acknowledged(self, store: Store) -> None:
        put(
            store,
            *(another(n, FORFEITED, reason="engine") for n in (2, 3)),
            another(4, COMMITTED, reason="engine"),
        )
        put(store, another(5, FORFEITED, dataset="e"))
        assert store.read(lambda rows: [row.id for row in rows.failures("d")]) == ["c2", "c3"]
        put(store, another(2, FORFEITED, reason="engine", acknowledged=1))
        assert store.read(lambda rows: [row.id for row in rows.failures("d")]) == ["c3"]

    def test_only_failures_that_count_are_found_for_their_analyst(self, store: Store) -> None:
        def ids() -> list[str]:
            return store.read(lambda rows: [row.id for row in rows.failed("d", "a")])

        put(
            store,
            *(another(n, FORFEITED, reason=reason) for n, reason in enumerate(COUNTED, start=2)),
        )
        put(
            store,
            another(5, FORFEITED, reason="interrupted"),
            another(6, FORFEITED, reason="engine", analyst="b"),
        )
        put(
            store,
            another(7, COMMITTED, reason="engine"),
            another(8, FORFEITED, reason="engine", dataset="e"),
        )
        assert ids() == ["c2", "c3", "c4"]
        put(store, another(3, FORFEITED, reason="crash", acknowledged=1))
        assert ids() == ["c2", "c4"]
        put(
            store,
            *(
                another(n, FORFEITED, reason=reason, acknowledged=1)
                for n, reason in ((2, "engine"), (4, "expired"))
            ),
        )
        assert ids() == []
        assert store.read(lambda rows: [row.id for row in rows.failures("d")]) == ["c5", "c6"]

    def test_the_first_answer_of_a_statement_stays_the_first(self, store: Store) -> None:
        later = AnswerRow("q2", "s1", "any1", "c2", b"second")
        put(store, another(2), ANSWER)
        put(store, later)
        assert store.read(lambda rows: (rows.answer("q1"), rows.answer("q2"))) == (ANSWER, later)
        assert store.read(
            lambda rows: (rows.first_answer("s1", "d/p/a"), rows.shared_answer("any1"))
        ) == (
            ANSWER,
            ANSWER,
        )

    def test_an_answer_that_may_not_be_shared_is_not_found_as_one(self, store: Store) -> None:
        put(store, ANSWER._replace(shared=""))
        assert store.read(lambda rows: rows.shared_answer("")) is None

    @pytest.mark.parametrize(
        "second",
        [
            ANSWER._replace(charge="c2"),
            ANSWER._replace(question="q2"),
            KEY._replace(request="other", seq=3),
            chain_of("d", 1)[0],
        ],
    )
    def test_what_is_there_once_is_not_there_twice(self, store: Store, second: object) -> None:
        put(store, another(2), ANSWER, KEY, chain_of("d", 1)[0])
        with pytest.raises(LedgerCorrupt):
            put(store, second)
        assert store.read(lambda rows: rows.counts()) == Counts(1, 2, 1, 1, 0, 1)

    def test_charges_come_by_their_entries_with_their_answers(self, store: Store) -> None:
        put(
            store,
            another(9),
            another(4),
            another(2, chain="c"),
            AnswerRow("q4", "s", "", "c4", b"4"),
        )
        found = store.read(
            lambda rows: [(row.id, answer and answer.body) for row, answer in rows.history()]
        )
        assert found == [("c2", None), ("c1", None), ("c4", b"4"), ("c9", None)]

    def test_keys_come_by_their_entries(self, store: Store) -> None:
        put(store, KEY._replace(key="z", seq=7), KEY._replace(chain="c", key="y", seq=9), KEY)
        assert [row.key for row in store.read(lambda rows: list(rows.keys()))] == ["y", "k", "z"]

    def test_a_chain_is_kept_in_order(self, store: Store) -> None:
        mine, other = chain_of("d", 5), chain_of("e", 2)
        put(store, *reversed(mine), *other)
        assert store.read(lambda rows: list(rows.entries("d"))) == mine
        assert store.read(lambda rows: list(rows.entries("d", after=3))) == mine[3:]
        assert store.read(lambda rows: (rows.last_entry("d"), rows.entry("e", 1))) == (
            mine[-1],
            other[0],
        )
        assert store.read(lambda rows: rows.entry("e", 3)) is None

    def test_the_clock_goes_on(self, store: Store) -> None:
        times = [store.read(lambda rows: rows.now()) for _ in range(5)]
        assert times == sorted(times)
        assert times[0] > 1_700_000_000_000

    def test_it_has_a_name_for_ever(self, store: Store, stores: Callable[[], Store]) -> None:
        name = store.identity
        store.close()
        assert stores().identity == name != ""

    def test_what_was_written_is_there_when_it_is_opened_again(
        self, store: Store, stores: Callable[[], Store]
    ) -> None:
        put(store, ANSWER)
        store.close()
        again = stores()
        assert (again.peek("d"), again.read(lambda rows: rows.answer("q1"))) == (ACCOUNT, ANSWER)

    def test_a_sound_store_has_no_damage(self, store: Store) -> None:
        store.checkpoint()
        assert store.damage() == []

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        store.close()
        for call in (
            lambda: store.read(lambda rows: 1),
            lambda: store.write(lambda rows: 1),
            lambda: store.peek("d"),
        ):
            with pytest.raises(LedgerUnavailable, match="closed"):
                call()
        with pytest.raises(LedgerError):
            store.damage()
