# SPDX-License-Identifier: Apache-2.0
"""The engine: every column in ball arithmetic, every path of small tables, and forced doubt.

A ``reach`` of one or two widths leaves much of the law to the tail; few cells and few bits of
height leave most points to the exact comparison. Neither may change the law.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from sfumato.noise import SYSTEM, Entropy, rejection_sampler, sampler
from sfumato.noise.curves import Exponential, Parabola
from sfumato.noise.lazy_uniform import Bounds
from sfumato.noise.ratio import BinomialRatio, PoissonRatio, Ratio, RatioCurve
from sfumato.noise.rejection_sampler import Cells
from tests.noise.columns import LAWS, Curve, F, exponential, faults, laws, truth
from tests.noise.truth import PRECISION, Mass, Restarted, Script, ball, every_path

Table: TypeAlias = Callable[[Curve], Cells]

ODD = [
    pytest.param({"bits": 12, "fineness": 8}, {}, id="12 bits"),
    pytest.param({"bits": 16, "fineness": 20}, {}, id="16 bits"),
    pytest.param({"bits": 11, "fineness": 9, "height_bits": 3}, {"reach": 2}, id="short reach"),
    pytest.param({"bits": 14, "fineness": 31}, {"reach": 7}, id="prime"),
]


# ---------------------------------------------------------------- (1) enumeration


@pytest.mark.parametrize("table", [sampler._small, sampler._large], ids=["small", "large"])
@pytest.mark.parametrize(
    ("curve", "f"), LAWS, ids=lambda each: str(each) if not callable(each) else ""
)
def test_every_column_covers_its_curve_and_every_easy_cell_is_under_it(
    curve: Curve, f: F, table: Table
) -> None:
    assert list(faults(table(curve), f)) == []


@pytest.mark.parametrize(("parameters", "changed"), ODD)
def test_odd_tables_are_as_right(parameters: dict[str, int], changed: dict[str, int]) -> None:
    for curve, f in LAWS[::4]:
        odd = replace(curve, **changed)
        assert list(faults(Cells(odd, **parameters), f)) == []


def ratio_truth(ratio: Ratio) -> F:
    """f(x) = P(mode + x) / P(mode), by exact steps."""
    known = {0: Fraction(1)}

    def f(x: int) -> arb:
        side = 1 if x > 0 else -1
        for each in range(side, x + side, side):
            if each not in known:
                over, under = (
                    ratio.up(ratio.mode + each - 1)
                    if side > 0
                    else ratio.down(ratio.mode + each + 1)
                )
                known[each] = known[each - side] * Fraction(over, under)
        return ball(known[x])

    return f


@pytest.mark.parametrize(
    "ratio",
    [
        BinomialRatio(40, Fraction(1, 3)),
        BinomialRatio(1, Fraction(1, 2)),
        PoissonRatio(Fraction(5, 2)),
    ],
    ids=str,
)
def test_tables_of_laws_known_by_their_ratios_are_as_right(ratio: Ratio) -> None:
    curve = RatioCurve(ratio)
    for table in (sampler._small, sampler._large):
        assert list(faults(table(curve), ratio_truth(ratio))) == []


def one_cell_short(table: Cells) -> None:
    """The fourth column gives its last cell to the fifth."""
    table._starts_list = [start - (place == 4) for place, start in enumerate(table._starts_list)]


def one_easy_cell_too_many(table: Cells) -> None:
    """A hard cell is taken for an easy one."""
    start = table._starts_list[4]
    place = start + int((table.table[start:] >= table._limit).argmax())
    table.table[place] = table.first + 4


def a_hat_too_low(table: Cells) -> None:
    """The tail's share is above one."""
    table._share *= 2**15


def a_wrong_name(table: Cells) -> None:
    """An easy cell leads to the neighbour's block."""
    table.table[table._starts_list[4]] += 1


def an_easy_escape(table: Cells) -> None:
    """A cell that belongs to no column gives a value."""
    table.table[-1] = 0


def a_hard_cell_of_a_neighbour(table: Cells) -> None:
    """A hard cell is judged as one of the next column."""
    table.table[int((table.table >= table._limit).argmax())] += 1


@pytest.mark.parametrize(
    "breaks",
    [
        one_cell_short,
        one_easy_cell_too_many,
        a_hat_too_low,
        a_wrong_name,
        an_easy_escape,
        a_hard_cell_of_a_neighbour,
    ],
)
@pytest.mark.parametrize(
    ("curve", "f"), list(laws([Fraction("7.3"), Fraction(1000)])), ids=lambda each: ""
)
def test_the_enumeration_notices_a_broken_table(
    breaks: Callable[[Cells], None], curve: Curve, f: F
) -> None:
    table = Cells(curve, bits=12, fineness=8)
    assert list(faults(table, f)) == []
    breaks(table)
    assert list(faults(table, f)) != []


# ---------------------------------------------------------------- every path of a small table


class Words(Script):
    """The first word of a draw, by its parts; a second one means that the first gave nothing."""

    table: Cells

    def bits(self, count: int) -> int:
        if count != 96:
            return super().bits(count)
        self.rounds += 1
        if self.rounds > 1:
            raise Restarted
        table = self.table
        words = [
            cell | offset << table.bits | height << 96 - table.height_bits
            for cell in range(1 << table.bits)
            for offset in range(1 << table.shift)
            for height in range(1 << table.height_bits)
        ]
        return self.choose([(word, Fraction(1, len(words))) for word in words])


def weighed(real: Bounds, script: Script, *, prefix: int = 0, known: int = 0) -> bool:
    """The exact comparison, as a coin of its bias; its own paths are followed in test_real."""
    lower, upper = real(PRECISION)
    bias = Fraction(lower + upper, 2 << PRECISION) * 2**known - prefix
    return script.coin(min(max(bias, Fraction(0)), Fraction(1)))


def law_of(table: Cells, monkeypatch: pytest.MonkeyPatch) -> dict[int | None, Mass]:
    """The exact mass of each value over all paths of an attempt.

    Tails are followed for about ten stretches.
    """
    monkeypatch.setattr(rejection_sampler, "is_below", weighed)
    monkeypatch.setattr(
        rejection_sampler,
        "below",
        lambda bound, script: script.choose([(each, Fraction(1, bound)) for each in range(bound)]),
    )
    tail, _ = every_path(table._tail, 2**-14)
    monkeypatch.setattr(table, "_tail", lambda script: script.choose(list(tail.items())))

    def draw(script: Script) -> int:
        words = Words(())
        words.__dict__.update(script.__dict__, table=table)
        return table.one(words)

    return every_path(draw, 0.0)[0]


def is_drawn_exactly(table: Cells, f: F, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether all masses stand to each other as the curve does, within 1e-25, far into the tail."""
    law = law_of(table, monkeypatch)
    reach = table._outside + 3 * table._stretch
    with ctx.workprec(PRECISION):
        return all(
            bool(abs(ball(law[x]) / ball(law[0]) / f(x) - 1) < 1e-25)
            for x in range(-reach if table.first else 0, reach + 1)
        ) and (table.first != 0 or min(law) == 0)


SMALL = [
    (Exponential(Fraction(7, 10), True, reach=11), {"bits": 6, "fineness": 4}),
    (Exponential(Fraction(7, 10), True, reach=1), {"bits": 6, "fineness": 4}),
    (Exponential(Fraction(3, 2), False, reach=1), {"bits": 5, "fineness": 4}),
    (Exponential(Fraction(5, 2), True, reach=2), {"bits": 6, "fineness": 1}),
    (Exponential(Fraction(9, 2), False, reach=1), {"bits": 4, "fineness": 1}),
    (Parabola(Fraction(7, 10), reach=3), {"bits": 6, "fineness": 4}),
    (Parabola(Fraction(2), reach=1), {"bits": 6, "fineness": 4}),
    (Parabola(Fraction(25, 2), reach=2), {"bits": 6, "fineness": 1}),
]


@pytest.mark.parametrize(("curve", "parameters"), SMALL, ids=str)
def test_draws_from_cells_follow_the_law_exactly(
    curve: Curve, parameters: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Cells(curve, height_bits=1, **parameters)
    assert is_drawn_exactly(table, truth(curve), monkeypatch)


def accepts_all(table: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken engine: points in doubt are taken to be under the curve."""
    monkeypatch.setattr(table, "_is_under", lambda *args: True)


def repeats_the_border(table: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken engine: the tail gives the column's last value below zero once more."""
    monkeypatch.setattr(table, "_outside", table._outside - 1)


def forgets_the_stretches(table: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken engine: the hat does not halve."""
    honest = table._share_of
    monkeypatch.setattr(table, "_share_of", lambda x, turns, precision: honest(x, 0, precision))


def drops_a_cell(table: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken engine: one hard cell of the last column gives nothing."""
    monkeypatch.setattr(table, "_escape", table._escape - 1)
    monkeypatch.setattr(table, "_void", table._void - 1)


@pytest.mark.parametrize(
    "breaks", [accepts_all, repeats_the_border, forgets_the_stretches, drops_a_cell]
)
@pytest.mark.parametrize("index", [1, 6])
def test_the_exact_law_notices_a_broken_engine(
    breaks: Callable[[Cells, pytest.MonkeyPatch], None], index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve, parameters = SMALL[index]
    table = Cells(curve, height_bits=1, **parameters)
    breaks(table, monkeypatch)
    assert not is_drawn_exactly(table, truth(curve), monkeypatch)


# ---------------------------------------------------------------- one, few and many

NOTHING, TAIL = 2**61, 2**60


class Given:
    """Plays words and heights in the order in which they are asked for, whichever way."""

    def __init__(self, table: Cells, words: np.ndarray, heights: list[int]) -> None:
        self._words, self._heights, self._bits = words, heights, table.height_bits

    def fill(self, buffer: np.ndarray) -> None:
        if len(self._words):
            count = buffer.size // self._words.itemsize
            buffer[:] = self._words[:count].view(np.uint8)
            self._words = self._words[count:]
        else:
            heights = np.array(self._heights, "<u8") << np.uint64(64 - self._bits)
            buffer[:] = heights.view(np.uint8)

    def bits(self, count: int) -> int:
        assert count == len(self._heights) * self._bits
        return sum(height << place * self._bits for place, height in enumerate(self._heights))


class Word:
    """One word of 96 bits; an attempt that gives nothing asks for another."""

    def __init__(self, word: int) -> None:
        self._word = [word]

    def bits(self, count: int) -> int:
        assert count == 96
        return self._word.pop()


def middle(real: Bounds, entropy: Entropy, *, prefix: int = 0, known: int = 0) -> bool:
    """The comparison with the middle of what is known of the uniform number: no draw."""
    lower, upper = real(known + 1)
    return 2 * prefix + 1 <= (lower + upper) // 2


def settled_one_by_one(table: Cells, drawn: np.ndarray, heights: list[int]) -> list[int]:
    """What each word and height come to alone."""
    found = []
    for word, height in zip(drawn.tolist(), heights, strict=True):
        cell, offset = word >> table._spare, word & table._mask
        try:
            found.append(
                table.one(Word(cell | offset << table.bits | height << 96 - table.height_bits))
            )
        except IndexError:
            found.append(NOTHING)
    return found


def settled_together(
    table: Cells, drawn: np.ndarray, heights: list[int], patch: pytest.MonkeyPatch
) -> list[int]:
    """What they come to all at once; the heights are those of the hard cells only."""
    hard = table.table[drawn >> table._spare] >= table._limit
    fill = table.fill
    with patch.context() as within:
        within.setattr(table, "fill", lambda out, entropy: out.fill(NOTHING))
        within.setattr(table, "one", lambda entropy: NOTHING)
        out = np.empty(len(drawn), np.int64)
        fill(out, Given(table, drawn, np.array(heights)[hard].tolist()))
    return out.tolist()


def settled_alike(
    table: Cells, drawn: np.ndarray, heights: list[int], patch: pytest.MonkeyPatch
) -> bool:
    """Whether words and heights come to the same one by one, a few at a time, and all at once."""
    patch.setattr(rejection_sampler, "is_below", middle)
    patch.setattr(table, "_tail", lambda entropy: TAIL)
    expected = settled_one_by_one(table, drawn, heights)
    few = [
        value
        for start in range(0, min(len(drawn), 4000), 20)
        for value in settled_together(
            table, drawn[start : start + 20], heights[start : start + 20], patch
        )
    ]
    return (
        expected == settled_together(table, drawn, heights, patch) and expected[: len(few)] == few
    )


def every(table: Cells) -> np.ndarray:
    """Every cell with every offset; the bits between them are of no effect."""
    words = [
        cell << table._spare | offset | between << table.shift
        for cell in range(1 << table.bits)
        for offset in range(1 << table.shift)
        for between in (0, (1 << table._spare - table.shift) - 1)
    ]
    return np.array(words, table._dtype)


@pytest.mark.parametrize(("curve", "parameters"), SMALL, ids=str)
def test_one_draw_and_many_follow_the_same_law(
    curve: Curve, parameters: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Cells(curve, height_bits=2, **parameters)
    for height in range(4):
        assert settled_alike(table, every(table), [height] * len(every(table)), monkeypatch)


@pytest.mark.parametrize("index", range(0, len(LAWS), 3))
def test_one_draw_and_many_follow_the_same_law_at_any_width(
    index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(index)
    table = Cells(LAWS[index][0], bits=14, fineness=20)
    cells_drawn = np.concatenate(
        (np.flatnonzero(table.table >= table._limit), random.integers(0, 1 << 14, 2000))
    )
    top = random.choice(cells_drawn, 20_000).astype(np.uint64) << np.uint64(table._spare)
    drawn = (top | random.integers(0, 1 << table._spare, 20_000, np.uint64)).astype(table._dtype)
    assert settled_alike(table, drawn, random.integers(0, 1 << 18, 20_000).tolist(), monkeypatch)


def test_the_same_law_notices_that_many_forget_the_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    curve, parameters = SMALL[3]
    table = Cells(curve, height_bits=2, **parameters)
    honest = table._margins

    def signless(
        number: rejection_sampler.Ints, *rest: rejection_sampler.Ints
    ) -> tuple[rejection_sampler.Ints, rejection_sampler.Ints]:
        return honest(abs(number) if isinstance(number, np.ndarray) else number, *rest)

    monkeypatch.setattr(table, "_margins", signless)
    assert not settled_alike(table, every(table), [1] * len(every(table)), monkeypatch)


# ---------------------------------------------------------------- edges


def test_the_far_end_of_the_tail_saturates(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ones:
        def __init__(self, turns: int, sign: int) -> None:
            self._bits = [1] * turns + [0]
            self._sign = sign

        def bits(self, count: int) -> int:
            return self._bits.pop(0) if self._bits else self._sign if count == 1 else 0

    monkeypatch.setattr(rejection_sampler, "is_below", lambda real, entropy: True)
    table = Cells(Exponential(Fraction(2**52), two_sided=True), bits=10, fineness=8)
    assert table._tail(Ones(2000, 0)) == 2**62
    assert table._tail(Ones(2000, 1)) == -(2**62)
    assert table._tail(Ones(3, 0)) == table._outside + 3 * 2**52
    assert table._tail(Ones(0, 1)) is None
    assert table._tail(Ones(0, 0)) == table._outside


def test_the_share_of_the_far_tail_is_its_own() -> None:
    table = Cells(Exponential(Fraction(1000), two_sided=True), bits=10, fineness=8)
    f, whole = exponential(Fraction(1000)), table._share
    for turns in (0, 1, 7, 300):
        x = table._outside + turns * table._stretch + 17
        lower, upper = table._share_of(x, turns, 2000)
        with ctx.workprec(3000):
            share = arb(fmpq(whole.numerator, whole.denominator)) * arb(2) ** turns * f(x)
            exact = share * arb(2) ** 2000
            assert bool(share <= 1)
            assert bool(arb(lower) <= exact) and bool(exact <= arb(upper)) and upper - lower <= 4


def test_a_table_that_cannot_work_is_refused() -> None:
    with pytest.raises(OverflowError, match="do not fit a word"):
        Cells(Exponential(Fraction(2**100), two_sided=True), bits=19, fineness=8)


def test_an_empty_array_stays_empty() -> None:
    out = np.empty(0, np.int64)
    Cells(Exponential(Fraction(3), two_sided=True), bits=10, fineness=8).fill(out, SYSTEM)
    assert out.tolist() == []
