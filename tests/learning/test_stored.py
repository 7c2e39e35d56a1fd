# SPDX-License-Identifier: Apache-2.0
"""What a model file says about itself."""

import json
from pathlib import Path

from sfumato.learning.stored import FORMAT, read_cost, write
from sfumato.query.cost import Cost


def test_a_file_states_its_format_and_kind(tmp_path: Path) -> None:
    write(tmp_path / "m.sfm", "clusters", {"sizes": [1, 2]})
    stored = json.loads((tmp_path / "m.sfm").read_text())
    assert stored == {"format": FORMAT, "kind": "clusters", "sizes": [1, 2]}


def test_a_cost_is_read_as_it_was_written() -> None:
    cost = Cost("1", "0.5", "0", ({"step": "counts"},))
    assert read_cost(json.loads(json.dumps(cost.to_json()))) == cost
