# SPDX-License-Identifier: Apache-2.0
"""OpenDP's threshold and plain mlxtend on the rows of ``make bench-mining``.

Each runs in the environment of its own, as a process. OpenDP adds noise to counts of distinct
people, in which a person is in at most so many keys; it neither splits texts nor cuts what a person
adds, so that work is done for it and not measured. mlxtend counts exactly, without any privacy.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def ask(peer: str, work: str, **given: Any) -> dict[str, Any] | None:
    """What a peer says about arrays, with its CPU seconds; None where it is not installed."""
    environment = ROOT / ".bench" / peer
    if not (environment / ".done").exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/given.npz", **given)
        command = [str(environment / "bin" / "python"), "-m", "benchmarks.mining_peers", work]
        ran = subprocess.run(  # noqa: S603 - this module
            [*command, folder], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return said


def shown_keys(given: Any) -> dict[str, Any]:
    """The keys that OpenDP's Gaussian threshold shows at epsilon 1, the most frequent first.

    The key at index i has ``people[i]`` people, and a person is in at most ``keep`` keys. As with
    us, half of the delta is for the threshold and half for the noise.
    """
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    keep, delta = int(given["keep"]), float(given["delta"])
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i64"))
    metric = dp.l02inf_distance(dp.absolute_distance(T="f64"))
    moved = (keep, keep**0.5, 1.0)

    def epsilon(scale: float) -> float:
        made = dp.m.make_gaussian_threshold(domain, metric, scale, int(100 * scale))
        curve = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(made), delta / 2)
        return float(curve.map(moved)[0])

    def lost(threshold: int) -> float:
        made = dp.m.make_gaussian_threshold(domain, metric, scale, threshold)
        return float(made.map(moved)[1])

    scale = dp.binary_search(lambda each: epsilon(each) <= 1, bounds=(1.0, 1000.0))
    threshold = dp.binary_search(lambda each: lost(each) <= delta / 2, bounds=(2, int(100 * scale)))
    counts = {str(key): int(n) for key, n in enumerate(given["people"])}
    begun = time.process_time()
    made = dp.m.make_gaussian_threshold(domain, metric, scale, threshold)
    noisy = made(counts)
    seconds = time.process_time() - begun
    ordered = sorted(noisy, key=lambda key: -noisy[key])
    return {"shown": [int(key) for key in ordered], "seconds": seconds}


def frequent_sets(given: Any) -> dict[str, Any]:
    """The sets of up to 4 items that mlxtend counts exactly, the most frequent first."""
    patterns = import_module("mlxtend.frequent_patterns")
    pandas, sparse = import_module("pandas"), import_module("scipy.sparse")
    people, items = given["people"], given["items"]
    ones = np.ones(len(people), bool)
    has = pandas.DataFrame.sparse.from_spmatrix(sparse.csr_matrix((ones, (people, items))))
    begun = time.process_time()
    sets = patterns.fpgrowth(has, min_support=float(given["support"]), max_len=4)
    seconds = time.process_time() - begun
    ordered = sets.sort_values("support", ascending=False)["itemsets"]
    return {"shown": [sorted(map(int, each)) for each in ordered], "seconds": seconds}


WORKS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "shown_keys": shown_keys,
    "frequent_sets": frequent_sets,
}

if __name__ == "__main__":
    work, folder = sys.argv[1:]
    print(json.dumps(WORKS[work](np.load(f"{folder}/given.npz"))))
