# SPDX-License-Identifier: Apache-2.0
"""Words, pairs of words and sets of items that are found, and what they take: ``make bench-mining``.

``python -m benchmarks.mining 5 texts_sorted`` runs 5 seeds of one part, and leaves the results of
the others as they were. Made-up texts and baskets of a million people, and the 14 columns of Adult,
each at epsilon 1, beside what exact counts would give, OpenDP's threshold and plain mlxtend. CPU
seconds are those of the whole call, on all threads. ``make bench-mining-scale`` runs the two parts
of mining_scale.py, which take minutes and gigabytes of disk, once.
"""

import csv
import gzip
import json
import math
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks import mining_scale
from benchmarks.mining_peers import ask
from sfumato import learning as ln
from sfumato import mining as mn

ROOT = Path(__file__).parent
TEXTS = ROOT.parents[1] / "shared" / "data" / "text"
PICTURES = TEXTS.parent / "mnist" / "mnist.npz"
NOTES = 20_000
ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
CHINESE = ("零", "一", "二", "三", "四", "五", "六", "七", "八", "九")
# Texts by the name of the figure: their file, how many are learnt, the epsilons.
SORTED = (
    ("SMS spam", "sms.csv.gz", 4128, (1, 3)),
    ("Chinese reviews", "reviews_zh.csv.gz", 13928, (1,)),
)
RESULTS = ROOT / "results" / "mining.json"
PEOPLE, SEEDS = 10**6, 5
WORDS, LENGTH = 10**5, 20
ITEMS, PLANTED = 1000, 20
# The most that counts as good, and the least, by name.
MOST = {"MNIST: error of a pixel": 1.5, **mining_scale.MOST}
LEAST = {
    "words of the top 100": 98,
    "words shown": 7500,
    "pairs of 2,000 people, %": 100,
    "pairs of 500 people, %": 95,
    "baskets: precision of the top 50": 0.95,
    "baskets: precision of sets of 2 and more": 0.95,
    "baskets: planted sets found": PLANTED,
    "Adult: precision of the top 50": 0.94,
    "SMS spam at epsilon 1, % right": 91,
    "SMS spam at epsilon 3, % right": 94.5,
    "Chinese reviews at epsilon 1, % right": 74,
    "MNIST: nearest mean, % right": 81.5,
    "MNIST: nearest mean at rho 0.001, % right": 80,
    "words with the right strongest prototype": 20,
    "digits by the nearest mean of a word, % right": 78,
    "split, choose and count, MB a CPU second": 5,
}


def asked(
    table: sf.Table,
    recipe: mn.Recipe,
    statement: str,
    delta: str | None,
    cost: dict[str, Any] = {"epsilon": 1},  # noqa: B006 - never changed
) -> tuple[Any, float]:
    """The result of a recipe at epsilon 1, or another cost, and its CPU seconds."""
    budget = sf.Budget(10, "1e-4")
    with tempfile.TemporaryDirectory() as folder:
        ledger = f"{folder}/ledger.db"
        with sf.connect({"t": table}, dataset="bench", budget=budget, ledger=ledger) as session:
            begun = time.process_time()
            found = mn.mine(session, recipe, statement, delta=delta, **cost)
            return found, time.process_time() - begun


def texts(seed: int, folder: Path) -> tuple[np.ndarray, sf.Table]:
    """The words of each person by their ranks, 20 of a Zipf distribution, and a table of them."""
    chances = np.arange(1, WORDS + 1) ** -1.1
    words = np.random.default_rng(seed).choice(WORDS, (PEOPLE, LENGTH), p=chances / chances.sum())
    names = np.array([f"w{rank}" for rank in range(WORDS)])
    path = folder / f"texts{seed}.parquet"
    with pq.ParquetWriter(path, pa.schema([("note", pa.string())])) as writer:
        for first in range(0, PEOPLE, 10**5):
            part = names[words[first : first + 10**5]].tolist()
            writer.write_table(pa.table({"note": [" ".join(row) for row in part]}))
    return words, sf.Table(path, columns={"note": sf.Text(tokens=sf.Tokens())})


def people_of(keys: np.ndarray, size: int) -> np.ndarray:
    """The number of people with each key; a row of keys for each of them."""
    ordered = np.sort(keys, axis=1)
    is_new = np.ones(ordered.shape, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return np.bincount(ordered[is_new], minlength=size)


def words_found(seed: int, folder: Path) -> dict[str, float]:
    """How many of the most frequent words are shown, how many in all, and the speed."""
    words, table = texts(seed, folder)
    found, seconds = asked(table, mn.Terms("note"), "SELECT note FROM t", "1e-7")
    people = people_of(words, WORDS)
    top = {f"w{rank}" for rank in np.argsort(-people)[:100]}
    size = sum(len(f"w{rank}") + 1 for rank in words[:1000].ravel()) * PEOPLE / 1000 / 1e6
    beside: dict[str, float] = {}
    if said := ask("opendp", "shown_keys", people=people, keep=LENGTH, delta="1e-7"):
        in_top = len(set(np.argsort(-people)[:100].tolist()) & set(said["shown"][:100]))
        beside = {"OpenDP: words of the top 100": in_top, "OpenDP: words shown": len(said["shown"])}
    return {
        "words of the top 100": len(top & set(found.terms[:100])),
        "words shown": len(found),
        "split, choose and count, MB a CPU second": size / seconds,
        "words: CPU seconds": seconds,
        **beside,
        **pairs_found(words, table),
    }


def pairs_found(words: np.ndarray, table: sf.Table) -> dict[str, float]:
    """Which pairs of neighbours that many people have are shown."""
    found, _ = asked(table, mn.Terms("note", grams=2), "SELECT note FROM t", "1e-7")
    shown = {tuple(key) for key in found.facts["levels"][1]["keys"]}
    pairs = words[:, :-1].astype(np.int64) * WORDS + words[:, 1:]
    ordered = np.sort(pairs, axis=1)
    is_new = np.ones(ordered.shape, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ids, people = np.unique(ordered[is_new], return_counts=True)
    # in a dict of Python, OpenDP's input, all pairs would take gigabytes; rare ones change no other
    ids, people = ids[people >= 50], people[people >= 50]
    given = {"people": people, "keep": LENGTH - 1, "delta": "1e-7"}
    said = ask("opendp", "shown_keys", **given)
    shares = {}
    for least in (2000, 500):
        is_known = people >= least
        known = [(f"w{each // WORDS}", f"w{each % WORDS}") for each in ids[is_known]]
        name = f"pairs of {least:,} people, %"
        shares[name] = 100 * mean(pair in shown for pair in known)
        if said:
            shares[f"OpenDP, pairs alone: {name}"] = 100 * float(
                np.isin(np.flatnonzero(is_known), said["shown"]).mean()
            )
    return shares


def frequent(has: np.ndarray, least: int, largest: int) -> dict[tuple[int, ...], int]:
    """All sets of items that at least so many people have, exactly; ``has`` is items by people."""
    bits = np.packbits(has, axis=1)
    counted: dict[tuple[int, ...], int]
    counted = {(item,): int(n) for item, n in enumerate(has.sum(axis=1)) if n >= least}
    level = sorted(counted)
    for _ in range(largest - 1):
        following: list[tuple[int, ...]] = []
        for one, other in combinations(level, 2):
            if one[:-1] == other[:-1]:
                joined = (*one, other[-1])
                n = int(np.bitwise_count(np.bitwise_and.reduce(bits[list(joined)])).sum())
                if n >= least:
                    counted[joined] = n
                    following.append(joined)
        level = following
    return counted


def beside(name: str, has: np.ndarray, support: float, true: Any) -> dict[str, float]:
    """The CPU seconds in which mlxtend counts the same sets without privacy, where it is."""
    items, people = np.nonzero(has)
    given = {"people": people.astype(np.int32), "items": items.astype(np.int32)}
    said = ask("mlxtend", "frequent_sets", **given, support=support)
    if said is None:
        return {}
    assert set(map(tuple, said["shown"])) == set(true), "both count exactly"
    return {f"mlxtend, without privacy, {name}: CPU seconds": said["seconds"]}


def precision(found: list[str], true: dict[str, int], smallest: int) -> float:
    """The share of the first 50 sets that are shown and are among the 50 most frequent."""

    def size(items: str) -> int:
        return items.count(", ") + 1

    best = [
        items for items in sorted(true, key=lambda each: -true[each]) if size(items) >= smallest
    ]
    shown = [items for items in found if size(items) >= smallest]
    return len(set(best[:50]) & set(shown[:50])) / 50


def named(counted: dict[tuple[int, ...], int], names: list[str]) -> dict[str, int]:
    """Exact counts by the names of sets, as results have them."""
    return {", ".join(sorted(names[item] for item in each)): n for each, n in counted.items()}


def baskets_found(seed: int, folder: Path) -> dict[str, float]:
    """Baskets of about 11 of 1,000 items, with 20 planted sets of three that 2.6% have."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, ITEMS + 1)
    has = np.zeros((ITEMS, PEOPLE), bool)
    for item, chance in enumerate(np.minimum(9.4 * chances / chances.sum(), 0.6)):
        has[item] = rng.random(PEOPLE) < chance
    sets = rng.permutation(np.arange(200, ITEMS))[: 3 * PLANTED].reshape(PLANTED, 3)
    for planted in sets:
        has[planted] |= rng.random(PEOPLE) < 0.026
    names = [f"i{item}" for item in range(ITEMS)]
    path = folder / f"baskets{seed}.parquet"
    with pq.ParquetWriter(path, pa.schema([("items", pa.string())])) as writer:
        for first in range(0, PEOPLE, 10**5):
            people, items = np.nonzero(has[:, first : first + 10**5].T)
            parts = np.split(items, np.searchsorted(people, np.arange(1, 10**5)))
            listed = [" ".join(names[item] for item in part) for part in parts]
            writer.write_table(pa.table({"items": listed}))
    table = sf.Table(path, columns={"items": sf.Text(tokens=sf.Tokens())})
    found, seconds = asked(table, mn.Itemsets(), "SELECT items FROM t", "1e-7")
    exact = frequent(has, int(0.02 * PEOPLE), 4)
    true = named(exact, names)
    shown = [row["items"] for row in found.to_dicts()]
    wanted = {", ".join(sorted(names[item] for item in planted)) for planted in sets}
    return {
        "baskets: precision of the top 50": precision(shown, true, 1),
        "baskets: precision of sets of 2 and more": precision(shown, true, 2),
        "baskets: planted sets found": len(wanted & set(shown)),
        "baskets: CPU seconds": seconds,
        **(beside("baskets", has, 0.02, exact) if seed == 0 else {}),
    }


def adult_found(seed: int, folder: Path) -> dict[str, float]:
    """The 14 columns of Adult without weights, at delta 1e-5; the data is the same in each seed."""
    rows = pq.read_table(ROOT / "data" / "adult.parquet").drop_columns(["fnlwgt", "split"])
    sizes = json.loads(rows.schema.metadata[b"sizes"])
    columns: dict[str, Any] = {
        name: sf.Integer(0, sizes[name] - 1) for name in rows.schema.names if name in sizes
    }
    listed = ", ".join(f'"{name}"' for name in columns)
    table = sf.Table(rows, columns=columns)
    recipe = mn.Itemsets(support="0.3")
    found, seconds = asked(table, recipe, f"SELECT {listed} FROM t", "1e-5")
    has, names = [], []
    for name in columns:
        values = np.array(rows[name])
        for code in range(sizes[name]):
            has.append(values == code)
            names.append(f"{name}={code}")
    exact = frequent(np.array(has), math.ceil(0.3 * rows.num_rows), 4)
    true = named(exact, names)
    shown = [row["items"] for row in found.to_dicts()]
    return {
        "Adult: precision of the top 50": precision(shown, true, 1),
        "Adult: CPU seconds": seconds,
        **(beside("Adult", np.array(has), 0.3, exact) if seed == 0 else {}),
    }


def texts_sorted(seed: int, folder: Path) -> dict[str, float]:
    """Messages and reviews that a model sorts rightly, at delta 1e-5, among those not learnt."""
    numbers = {}
    for name, file, learnt, epsilons in SORTED:
        with gzip.open(TEXTS / file, "rt", encoding="utf-8", newline="") as opened:
            rows = np.array(list(csv.reader(opened))[1:], object)
        rows = rows[np.random.default_rng(seed).permutation(len(rows))]
        frame = pa.table({"note": rows[:learnt, 0].tolist(), "y": rows[:learnt, 1] == "1"})
        columns: dict[str, Any] = {"note": sf.Text(tokens=sf.Tokens()), "y": sf.Boolean()}
        with sf.connect(
            {"t": sf.Table(frame, columns=columns)},
            dataset="bench",
            budget=sf.Budget(10, "1e-4"),
            ledger=folder / f"{name}.db",
        ) as session:
            for epsilon in epsilons:
                asked: dict[str, Any] = {"label": "y", "epsilon": epsilon, "delta": "1e-5"}
                model = ln.fit(session, ln.LogisticRegression(), "SELECT note, y FROM t", **asked)
                said = np.array(model.predict({"note": rows[learnt:, 0].tolist()})) == "True"
                right = 100 * np.mean(said == (rows[learnt:, 1] == "1"))
                numbers[f"{name} at epsilon {epsilon}, % right"] = float(right)
    return numbers


def digits_found(seed: int, folder: Path) -> dict[str, float]:
    """Mean digits of MNIST, and words of notes in two languages by their pictures."""
    data = np.load(PICTURES)
    order = np.random.default_rng(seed).permutation(len(data["y_train"]))
    pictures, digits = data["x_train"][order].reshape(-1, 784), data["y_train"][order]
    tests = data["x_test"].reshape(-1, 784).astype(float), data["y_test"]
    columns: dict[str, Any] = {
        "picture": sf.Array((28, 28), 0, 255),
        "digit": sf.Integer(0, 9),
        "note": sf.Text(tokens=sf.Tokens()),
    }
    frame = {"picture": list(pictures), "digit": digits}
    table = sf.Table(pa.table(frame), columns={name: columns[name] for name in frame})
    recipe, statement = mn.Means("picture", by="digit"), "SELECT picture, digit FROM t"
    means, seconds = asked(table, recipe, statement, "1e-5")
    least, _ = asked(table, recipe, statement, None, {"rho": "0.001"})
    exact = np.array([pictures[digits == digit].mean(axis=0) for digit in range(10)])
    shown = np.array([means[digit].reshape(-1) for digit in range(10)])
    numbers = {
        "MNIST: error of a pixel": float(np.abs(shown - exact).mean()),
        "MNIST: nearest mean, % right": right_by_nearest(means, lambda label: label, *tests),
        "MNIST: nearest mean at rho 0.001, % right": right_by_nearest(
            least, lambda label: label, *tests
        ),
        "MNIST: CPU seconds": seconds,
    }
    # the notes of 20,000 digits, each with a word of two languages; 30% speak of another digit
    rng = np.random.default_rng(seed)
    wrong = rng.random(NOTES) < 0.3
    said = np.where(wrong, rng.integers(0, 10, NOTES), digits[:NOTES])
    notes = [f"{ENGLISH[each]}, {CHINESE[each]}" for each in said]
    frame = {"picture": list(pictures[:NOTES]), "note": notes}
    table = sf.Table(pa.table(frame), columns={name: columns[name] for name in frame})
    statement = "SELECT picture, note FROM t"
    words = {word: digit for names in (ENGLISH, CHINESE) for digit, word in enumerate(names)}
    by_word, _ = asked(table, mn.Means("picture", by="note", only=[*words]), statement, "1e-6")
    prototypes = [by_word[word] for word in ENGLISH]
    terms = mn.Terms("note", by="picture", prototypes=prototypes)
    found, _ = asked(table, terms, statement, "1e-6")
    strongest: dict[str, tuple[float, int]] = {}
    for row in found.to_dicts():
        best = strongest.get(row["term"], (0.0, -1))
        if row["picture"] is not None:
            strongest[row["term"]] = max(best, (row["share"], row["picture"]))
    numbers["words with the right strongest prototype"] = sum(
        strongest.get(word, (0, -1))[1] == digit for word, digit in words.items()
    )
    numbers["digits by the nearest mean of a word, % right"] = right_by_nearest(
        by_word, words.__getitem__, *tests
    )
    return numbers


def right_by_nearest(
    means: Any, digit_of: Callable[[Any], int], pictures: np.ndarray, digits: np.ndarray
) -> float:
    """The percentage of pictures whose nearest mean is of their digit."""
    labels = [label for label, people in means.counts.items() if label is not None and people >= 1]
    points = np.array([means[label].reshape(-1) for label in labels])
    away = (points**2).sum(axis=1) - 2 * pictures @ points.T
    named = np.array([digit_of(label) for label in labels])[away.argmin(axis=1)]
    return float(100 * np.mean(named == digits))


def scales(_: int, folder: Path) -> dict[str, float]:
    """The CPU seconds and gigabytes of what takes minutes; there is one seed."""
    return {**mining_scale.measure("10^8 words"), **mining_scale.measure("10^6 pictures")}


PARTS: tuple[Callable[[int, Path], dict[str, float]], ...] = (
    words_found,
    baskets_found,
    adult_found,
    texts_sorted,
    digits_found,
)
# What a part needs that is not in the project.
NEEDS: dict[Callable[[int, Path], dict[str, float]], Path] = {
    texts_sorted: TEXTS,
    digits_found: PICTURES,
    scales: PICTURES,
}


def main() -> None:
    """Measures all parts but the scales, or those that are named, writes the results, and says
    which bars hold.
    """
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    names = sys.argv[2:] or [part.__name__ for part in PARTS]
    for part in (*PARTS, scales):
        if part.__name__ not in names:
            continue
        if part in NEEDS and not NEEDS[part].exists():
            print(f"{part.__name__} is left out: there is no {NEEDS[part].name} in shared/data")
            continue
        numbers: dict[str, list[float]] = {}
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                for name, number in part(seed, Path(folder)).items():
                    numbers.setdefault(name, []).append(round(float(number), 4))
            latest = {name: values[-1] for name, values in numbers.items()}
            print(part.__name__, seed, latest, flush=True)
        _write(numbers)
    means = json.loads(RESULTS.read_text("utf-8"))["means"]
    for name, bar in (LEAST | MOST).items():
        if name in means:
            is_most = name in MOST
            holds = means[name] <= bar if is_most else means[name] >= bar
            words = "at most" if is_most else "at least"
            print(f"{name}: {means[name]:g}, {words} {bar:g}: {'holds' if holds else 'MISSED'}")


def _write(numbers: dict[str, list[float]]) -> None:
    """Writes the results of a part; those of the others stay as they were."""
    earlier = json.loads(RESULTS.read_text("utf-8"))["each"] if RESULTS.exists() else {}
    numbers = earlier | numbers
    means = {name: round(mean(values), 4) for name, values in numbers.items()}
    each_seeds = {name: len(values) for name, values in numbers.items()}
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    body = {"means": means, "seeds": each_seeds, "each": numbers, **machine}
    RESULTS.write_text(json.dumps(body, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
