# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/synopsis.md: ``make figures``. They are computed from declarations."""

import sfumato as sf
from benchmarks.driver import ROOT
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis import Plan, plan, ranges

_FOLDER = ROOT / "docs" / "figures"
_FILES = {
    "identity": "strategy-identity",
    "tree of 4": "strategy-tree",
    "Haar wavelet": "strategy-wavelet",
}


def main() -> None:
    """Writes a picture of the layers of some strategies."""
    people = sf.Table("people.csv", columns={"age": sf.Integer(0, 63)})
    planned = plan(Dataset("survey", {"people": people}), "people", ranges("age"), rho="0.01")
    assert isinstance(planned, Plan), "of one column"
    for strategy in planned.candidates:
        if strategy.name in _FILES:
            planned.plot(strategy).save(_FOLDER / f"{_FILES[strategy.name]}.svg")


if __name__ == "__main__":
    main()
