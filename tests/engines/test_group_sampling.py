# SPDX-License-Identifier: Apache-2.0
"""The sampling order: that of the reference, total whatever the rows, and fair."""

import hashlib
import itertools
import math
from contextlib import closing

import duckdb
import pytest

from sfumato.engines import emit, group_sampling, reference, unit_limits
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed, text
from sfumato.engines.group_sampling import LARGEST, Order
from sfumato.engines.sql_tree import Column
from tests.contracts.conformance import differing, differs
from tests.contracts.examples import EXAMPLES
from tests.contracts.verbatim import Verbatim

# --- what the SQL gives is what the reference does --------------------------------------------

KEYS_OF = [Column("k0"), Column("k1")]
ENDS = [
    0,
    1,
    -1,
    2**22 - 1,
    2**22,
    -(2**22),
    2**44 - 1,
    -(2**44),
    2**62,
    2**63 - 1,
    -(2**63),
    1_000_003,
]
TEXTS = ["", "p", "Ü", "01", "-0", "+1", "1e3", " 1", "٣", "1\n", str(2**63), "7", "x|y"]
GROUPS = [(None, "a"), (0, "a"), (-(2**62), "N"), (2**62, ""), (1, "a|b"), (1, None)]


def rows_of(units, kind):
    listed = ", ".join(
        f"({text(str(unit))}::{kind}, {'NULL' if code is None else code}::BIGINT, "
        f"{'NULL' if word is None else text(word)}::VARCHAR)"
        for unit in units
        for code, word in GROUPS
    )
    return Verbatim(
        f"SELECT *, length(CAST(unit AS VARCHAR)) AS n FROM (VALUES {listed}) AS t(unit, k0, k1)"
    )


def placed(units, kind, key, *, by_row=False):
    order = Order(key, kind == "BIGINT", by_row=by_row)
    sql = printed(order.placed(rows_of(units, kind), KEYS_OF))
    with closing(duckdb.connect()) as connection:
        found = connection.execute(f"SELECT unit, k0, k1, h FROM ({sql})").fetchall()
    return {(str(unit), code, word): place for unit, code, word, place in found}


@pytest.mark.parametrize(
    ("units", "kind"), [(ENDS, "BIGINT"), (TEXTS + [str(each) for each in ENDS], "VARCHAR")]
)
def test_the_order_is_that_of_the_reference(units, kind):
    for key in ("key", "it's", "Ü|"):
        expected = {
            (str(unit), *group): reference.place(key, *group, str(unit))
            for unit in units
            for group in GROUPS
        }
        assert placed(units, kind, key) == placed(units, kind, key, by_row=True) == expected


def test_no_number_can_overflow(monkeypatch):
    # the largest numbers that md5 can give
    monkeypatch.setattr(group_sampling.hashlib, "md5", lambda *_, **__: _Largest())
    monkeypatch.setattr(
        group_sampling.sql, "HexNumber", lambda *_: Verbatim(f"{2**32 - 1}::BIGINT")
    )
    for by_row in (False, True):
        assert len(placed(ENDS, "BIGINT", "key", by_row=by_row)) == 72
        assert len(placed([str(each) for each in ENDS], "VARCHAR", "key", by_row=by_row)) == 72


class _Largest:
    def hexdigest(self):
        return "f" * 32


def test_a_unit_keeps_its_first_groups():
    for kind, most in itertools.product(("BIGINT", "VARCHAR"), (1, 2, 5, 6, 8)):
        units = ENDS if kind == "BIGINT" else [*TEXTS, *map(str, ENDS)]
        declared = Verbatim(f"SELECT DISTINCT k0, k1 FROM ({printed(rows_of(['p'], 'VARCHAR'))})")
        firsts = Order("key", kind == "BIGINT")
        expected = {}
        for unit in units:
            held = sorted(GROUPS, key=lambda group: reference.place("key", *group, str(unit)))
            for group in held[:most]:
                counted, summed = expected.get(group, (0, 0))
                expected[group] = (counted + 1, summed + len(str(unit)))
        with closing(duckdb.connect()) as connection:
            both = connection.execute(
                printed(
                    firsts.first(
                        rows_of(units, kind), KEYS_OF, most, Verbatim(f"least(n, {LARGEST})")
                    )
                )
            ).fetchall()
            alone = connection.execute(
                printed(firsts.first(rows_of(units, kind), KEYS_OF, most, groups=declared))
            ).fetchall()
        assert {row[:2]: row[2:] for row in both} == expected
        assert {row[:2]: row[2:] for row in alone} == {
            group: found[:1] for group, found in expected.items()
        }


def changed(name, cut, put):
    honest = getattr(Order, name)

    def wrong(self, *arguments, **options):
        made = printed(honest(self, *arguments, **options))
        assert cut in made
        return Verbatim(made.replace(cut, put))

    return name, wrong


MUTANTS = {
    "ties by any number": changed("first", "ORDER BY k0 NULLS FIRST", "ORDER BY k0 DESC"),
    "amounts of another place": changed("first", "sum(p & 255)", "sum(p & 511)"),
    "one group more": changed("first", ", 2)", ", 3)"),
    "the last groups": changed("first", "min(p", "max(p"),
    "NULL in no group": changed(
        "numbers", "FROM found GROUP BY k0", "FROM found WHERE k0 IS NOT NULL GROUP BY k0"
    ),
    "a group of each row": changed("numbers", " GROUP BY k0", ""),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_order_is_noticed(monkeypatch, mutant):
    if "ties" in mutant:
        # every group is tied with every other
        monkeypatch.setattr(Order, "place", property(lambda self: Verbatim("a - a")))
        monkeypatch.setattr(reference, "place", lambda key, *held: 0)
        assert not differs(DuckDB, "first groups")
    monkeypatch.setattr(Order, *MUTANTS[mutant])
    assert any(differing(DuckDB, ("rows of first groups", "open keys", "first groups")))


def test_both_ways_to_keep_the_first_groups_agree(monkeypatch):
    short = [
        name for name, (plan, _) in EXAMPLES.items() if (unit_limits.kept(plan) or 9) <= emit._FEW
    ]
    assert "rows of first groups" in short
    monkeypatch.setattr(emit, "_is_of_first", lambda *_: False)
    assert not list(differing(DuckDB, short))


# --- fair ------------------------------------------------------------------------------------

# So many sampling keys, so many units, so many groups of each, so many of them kept.
KEYS, UNITS, HELD, KEPT = 1_500, 16, 6, 2
ALARM = 1e-9
CODES = list(range(HELD))
FAMILIES = {
    "consecutive units": ([str(1_000_000 + each) for each in range(UNITS)], CODES),
    "multiples of a power of two": (
        [str((each - 8) << 44) for each in range(UNITS)],
        [code << 20 for code in CODES],
    ),
    "texts": (
        [f"user{each}@example.org" for each in range(UNITS)],
        [f"P{code:05}" for code in CODES],
    ),
}


def kept(place, units, groups):
    """For each sampling key: in how many units' first groups each group, and each pair of groups,
    is.
    """
    for number in range(KEYS):
        key = hashlib.sha256(b"%d" % number).hexdigest()[:32]
        counts = dict.fromkeys(
            [*itertools.combinations(groups, 1), *itertools.combinations(groups, 2)], 0
        )
        for unit in units:
            first = sorted(groups, key=lambda group: (place(key, group, unit), group))[:KEPT]
            for size in (1, 2):
                for each in itertools.combinations(sorted(first), size):
                    counts[each] += 1
        yield counts


def bent(place, units, groups):
    """By how much the largest of the deviations is beyond what chance allows: 1 is the limit.

    Claimed: a set of s groups is kept by a unit with the probability q = C(k - s, K - s) / C(k, K),
    and two units keep independently. Let Z be the part of the units that keeps it, less q: between
    -q and 1 - q, of mean 0 and variance v = q (1 - q) / units, and independent over the sampling
    keys. Bernstein's inequality for Z, -Z and Z^2 (below M = max(q, 1 - q)^2, of mean v, so of
    variance at most M v), and the union over sets and families: all stay within the limits but with
    probability ALARM. A bias above twice the limit is noticed as surely: at these sizes 0.06 of q =
    1/3 and 0.04 of q = 1/15; and so is a mean of Z^2 of 0.05 in place of 0.014 (0.22: all units
    alike).
    """
    found = list(kept(place, units, groups))
    worst = 0.0
    log = math.log(3 * len(found[0]) * len(FAMILIES) / ALARM)
    for each in found[0]:
        q = math.comb(HELD - len(each), KEPT - len(each)) / math.comb(HELD, KEPT)
        variance, most = q * (1 - q) / UNITS, max(q, 1 - q) ** 2
        parts = [counts[each] / UNITS - q for counts in found]
        mean, square = sum(parts) / KEYS, sum(part * part for part in parts) / KEYS - variance
        worst = max(
            worst, abs(mean) / _limit(variance, 1, log), square / _limit(most * variance, most, log)
        )
    return worst


def _limit(variance, most, log):
    """What the mean of KEYS variables below ``most`` passes with a probability of exp(-log)."""
    return most * log / (3 * KEYS) + math.sqrt(
        (most * log / (3 * KEYS)) ** 2 + 2 * variance * log / KEYS
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_is_fair(family):
    assert bent(reference.place, *FAMILIES[family]) < 1


def _digest(*parts):
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


UNFAIR = {
    "by the group itself": lambda key, group, unit: 0,
    "one order for all units": lambda key, group, unit: _digest(key, group),
    "one order for all sampling keys": lambda key, group, unit: _digest(group, unit),
    "a sum": lambda key, group, unit: (int(unit) + group + int(key, 16)) % group_sampling.PRIME,
    "a product": lambda key, group, unit: (
        (int(unit) * (group + 1) * int(key, 16)) % group_sampling.PRIME
    ),
    "the last bits of a unit": lambda key, group, unit: _digest(key, group, int(unit) % 4),
    "one group too often": lambda key, group, unit: _digest(key, group, unit) * (2 if group else 1),
}


@pytest.mark.parametrize("mutant", UNFAIR)
def test_an_order_that_is_not_fair_is_noticed(mutant):
    assert bent(UNFAIR[mutant], *FAMILIES["consecutive units"]) > 1
