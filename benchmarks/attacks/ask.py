# SPDX-License-Identifier: Apache-2.0
"""Tries one case on one system: ``python -m benchmarks.attacks.ask CASE SYSTEM``."""

import json
import sys
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

PACKAGES = {
    "sfumato": "sfumato",
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
    "pipelinedp": "pipeline-dp",
    "python-dp": "python-dp",
    "smartnoise": "smartnoise-sql",
    "tumult": "tmlt.analytics",
    "opacus": "opacus",
}


def main(name: str, system: str) -> None:
    """Prints the outcome, what was seen, and the version, as JSON."""
    warnings.simplefilter("ignore")
    case = import_module(f"benchmarks.attacks.{name}").CASE
    outcome, seen = case.systems[system]()
    try:
        installed = version(PACKAGES[system])
    except PackageNotFoundError:
        installed = "of this repository"
    print(json.dumps({"outcome": outcome, "seen": seen, "version": installed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
