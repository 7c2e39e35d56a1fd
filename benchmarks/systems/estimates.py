# SPDX-License-Identifier: Apache-2.0
"""How right the estimates of telemetry are: 200 runs of every oracle beside its formula."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TypeAlias

import numpy as np

import sfumato as sf
from benchmarks.systems import Call, Make
from sfumato.noise import SYSTEM
from sfumato.telemetry import ReportTask, Texts, Words, candidates, oracles, report_task, simulate
from sfumato.telemetry.domain import Declared
from sfumato.telemetry.intervals import Floats
from sfumato.telemetry.oracles.form import AnyOracle

RUNS = 200
VALUES = 200
# 30 values that devices hold, and 170 that none does
HELD = np.array([1000] * 10 + [500] * 20 + [0] * 170)
DEVICES = 20_000
LISTED = ("category", "projective", "bit", "hashed", "unary")
OPEN = ("sketch", "count_mean", "hadamard_count_mean", "rappor")
SEARCHED = ("prefixes", "fragments")
OTHERS = ("mean", "levels", "attributes", *SEARCHED)
EVERY = LISTED + OPEN + OTHERS
# The errors of a run, and the variances that their formulas give.
Run: TypeAlias = tuple[Floats, Floats]


def _task(oracle: AnyOracle, domain: Declared, memory: int = 0) -> ReportTask:
    return report_task("t", "?", domain, oracle=oracle, start=0, periods=1, memory=memory)


def _listed(name: str, epsilon: float) -> Callable[[int], Run]:
    """Counts of values."""
    oracle = getattr(oracles, name)(VALUES, epsilon)
    task = _task(oracle, sf.Integer(0, VALUES - 1))

    def run(_: int) -> Run:
        found = simulate(task, HELD.tolist()).estimate()
        return found.estimate - HELD, found.coins.variance(HELD.astype(float))

    return run


def _open(name: str, epsilon: float) -> Callable[[int], Run]:
    """Counts of texts; other texts in each run, for two texts collide in the same rows always."""
    rappor = name == "rappor"
    oracle = oracles.rappor() if rappor else getattr(oracles, name)(epsilon)
    task = _task(oracle, Texts(), memory=int(rappor))
    counts = HELD[:40]

    def run(number: int) -> Run:
        held = {f"{number}-{place}": int(count) for place, count in enumerate(counts)}
        known: dict[object, int] = {text: count for text, count in held.items() if count}
        found = simulate(task, known).texts(list(held))
        return found.estimate - counts, found.standard_error**2

    return run


def _mean(_: str, epsilon: float) -> Callable[[int], Run]:
    """Means of a hundred groups of 200 devices, one of each value."""
    oracle = oracles.mean(VALUES, epsilon)
    readings = np.array([float(each) for each in oracle.readings()])
    values = np.arange(VALUES)
    variance = float(np.mean(oracle.variances())) / VALUES
    true = float(np.mean(values)) / (VALUES - 1)

    def run(_: int) -> Run:
        errors = []
        for _ in range(100):
            tally = oracle.tally(oracle.encode_many(values, SYSTEM))
            errors.append(float(np.dot(tally, readings)) / VALUES - true)
        return np.array(errors), np.full(100, variance)

    return run


def _levels(_: str, epsilon: float) -> Callable[[int], Run]:
    """Shares of single numbers, which the lowest level alone tells."""
    oracle = oracles.levels(VALUES, epsilon)
    task = _task(oracle, sf.Integer(0, VALUES - 1))
    leaf, chance = oracle.parts[0], float(oracle.chances[0])
    own, other = float(leaf.own), float(leaf.other)
    shares = HELD / DEVICES
    # of one report of the level: the squares of its terms, of a device that holds the number
    inside = own * (1 - own) / (own - other) ** 2 + 1
    outside = other * (1 - other) / (own - other) ** 2
    variance = (shares * inside + (1 - shares) * outside) / chance - shares

    def run(_: int) -> Run:
        found = simulate(task, HELD.tolist()).distribution()
        each = [found.between(number, number).estimate for number in range(VALUES)]
        return np.array(each) - shares, variance / DEVICES

    return run


def _attributes(_: str, epsilon: float) -> Callable[[int], Run]:
    """Counts of one of two attributes, among those that drew it."""
    first, second = oracles.projective(VALUES, epsilon), oracles.category(2, epsilon)
    numbers = sf.Integer(0, VALUES - 1)
    task = _task(oracles.attributes([first, second]), {"a": numbers, "b": sf.Integer(0, 1)})
    shares = HELD / DEVICES
    held: dict[object, int] = {}
    for place, count in enumerate(HELD[:30].tolist()):
        held[place, 0] = count

    def run(_: int) -> Run:
        found = simulate(task, held).attribute("a")
        expected = found.reports * shares
        # half of the holders drew the attribute
        drawn = expected * (1 - shares) / 2
        return found.estimate - expected, found.coins.variance(expected) + drawn

    return run


def _searched(name: str, epsilon: float) -> Callable[[int], Run]:
    """Counts of texts that a search found; the texts are others in each run."""
    letters = "abcdefghij"
    words = Words(letters, 4)
    oracle = getattr(oracles, name)(words.symbols, words.length, epsilon=epsilon)
    task = _task(oracle, words)
    count = 5000

    def run(number: int) -> Run:
        random = np.random.default_rng(number)
        drawn = random.choice(10**4, 30, replace=False).tolist()
        texts = ["".join(letters[int(digit)] for digit in f"{each:04}") for each in drawn]
        found = simulate(task, dict.fromkeys(texts, count)).discover(kept=40)
        true = np.array([count if text in texts else 0 for text in found.values])
        # so many are found in every run; which of them does not depend on the estimates
        some = np.argsort(found.values)[:20]
        return (found.estimate - true)[some], found.standard_error[some] ** 2

    return run


@cache
def _scores(name: str, epsilon: float) -> tuple[float, float]:
    """The mean square of errors over their formula, and the largest bias in standard errors."""
    make: Callable[[str, float], Callable[[int], Run]] = _listed
    if name in OPEN:
        make = _open
    if name in OTHERS:
        make = {
            "mean": _mean,
            "levels": _levels,
            "attributes": _attributes,
            "prefixes": _searched,
            "fragments": _searched,
        }[name]
    run = make(name, epsilon)
    errors, variances = (np.array(each) for each in zip(*map(run, range(RUNS)), strict=True))
    scores = errors / np.sqrt(variances)
    # of texts that a search found, and of groups, one place is not one value
    bias = np.array([scores.mean() * math.sqrt(scores.shape[1])])
    if name not in ("mean", *SEARCHED):
        bias = scores.mean(axis=0)
    return float(np.mean(scores**2)), float(np.abs(bias).max()) * math.sqrt(RUNS)


def _variance(name: str, epsilon: float, _: int) -> Call:
    return lambda: _scores(name, epsilon)[0]


def _bias(name: str, epsilon: float, _: int) -> Call:
    return lambda: _scores(name, epsilon)[1]


def unary_variance(epsilon: float) -> float:
    """The variance of unary encoding for one report, in real arithmetic."""
    return 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2


def sizes(most: int) -> list[int]:
    """Powers of two up to the most, and numbers between them."""
    found = []
    size = 4
    while size <= most:
        found += [size, min(size + size // 3, most)]
        size *= 2
    return found


def _projective(epsilon: float, n: int) -> Call:
    """The largest variance of projective response up to n values, beside unary encoding's."""

    def call() -> object:
        ratios = []
        for size in sizes(n):
            oracle = oracles.projective(size, str(epsilon))
            own, other = oracle.own, oracle.other
            variance = float(other * (1 - other) / (own - other) ** 2)
            ratios.append(variance / unary_variance(epsilon))
        return max(ratios)

    return call


def _best(epsilon: float, n: int) -> Call:
    """The variance of the best oracle for n values, beside unary encoding's."""
    return lambda: candidates(n, str(epsilon))[0].variance / unary_variance(epsilon)


def _worst_mean(epsilon: float, n: int) -> Call:
    """The largest variance of a mean for one report, in squares of half the range."""
    return lambda: 4 * float(oracles.mean(n, epsilon).worst)


def _median(epsilon: float, n: int) -> Call:
    """The error of the share below the median of 1,024 values, beside sums of unary counts.

    The median is where no large node of the levels ends.
    """
    n = max(n, 10_000)  # of fewer devices none has most of the values
    values, middle, runs = 1024, 427, 100
    task = _task(oracles.levels(values, epsilon), sf.Integer(0, values - 1))
    place = np.arange(values)
    counts = np.floor(n * np.exp(-(((place - middle + 0.5) / 150) ** 2) / 2) / 376).astype(int)
    true = float(counts[:middle].sum() / counts.sum())

    def call() -> object:
        errors = []
        for _ in range(runs):
            found = simulate(task, counts.tolist()).distribution()
            errors.append(found.below(middle).estimate - true)
        by_sums = math.sqrt(middle * unary_variance(epsilon) / float(counts.sum()))
        return float(np.sqrt(np.mean(np.square(errors)))) / by_sums

    return call


def _unknown(name: str, epsilon: float, n: int) -> Call:
    """Of n devices with texts of 48 bits by Zipf's law, how many of the 32 most frequent."""

    def call() -> object:
        held = zipf_texts(n)
        words = Words("0123456789abcdef", 12)
        oracle = getattr(oracles, name)(words.symbols, words.length, epsilon=epsilon)
        task = _task(oracle, words)
        known: dict[object, int] = {**held}  # type: ignore[dict-item]
        found = simulate(task, known).discover().values[:32]
        return float(len(set(found) & set(list(held)[:32])))

    return call


def zipf_texts(devices: int, different: int = 100_000, exponent: float = 1.1) -> dict[str, int]:
    """Random texts of 12 hexadecimal digits, the most frequent first, and their devices."""
    weights = np.arange(1, different + 1) ** -exponent
    random = np.random.default_rng()
    counts = random.multinomial(devices, weights / weights.sum())
    texts = [f"{number:012x}" for number in random.integers(1 << 48, size=different).tolist()]
    pairs = zip(texts, counts.tolist(), strict=True)
    return {text: count for text, count in pairs if count}


@cache
def _rappor(n: int) -> tuple[float, float]:
    """Of 100 texts by a normal law and 100 absent ones: how many are found, and how many false."""
    weights = np.exp(-(((np.arange(100) - 49.5) / (100 / 6)) ** 2) / 2)
    counts = np.floor(weights / weights.sum() * n).astype(int).tolist()
    held: dict[object, int] = {f"V{place}": count for place, count in enumerate(counts)}
    listed = [*map(str, held), *(f"absent {place}" for place in range(100))]
    task = _task(oracles.rappor(), Texts(), memory=1)
    right, false = [], []
    for _ in range(10):
        found = simulate(task, held).texts(listed).found("0.95")
        right.append(sum(text in held for text in found))
        false.append(len(found) - right[-1])
    return float(np.mean(right)), float(np.mean(false))


def _works() -> dict[str, Make]:
    """Each work by its name."""
    found: dict[str, Make] = {
        "telemetry projective variance": _projective,
        "telemetry best variance": _best,
        "telemetry worst mean": _worst_mean,
        "telemetry median": _median,
        "telemetry unknown": partial(_unknown, "prefixes"),
        "telemetry fragments": partial(_unknown, "fragments"),
        "telemetry rappor found": lambda _, n: lambda: _rappor(n)[0],
        "telemetry rappor false": lambda _, n: lambda: _rappor(n)[1],
    }
    for name in EVERY:
        found[f"telemetry variance {name}"] = partial(_variance, name)
        found[f"telemetry bias {name}"] = partial(_bias, name)
    return found


ESTIMATES = _works()
