# SPDX-License-Identifier: Apache-2.0
"""What the JSON of a synopsis tells; ``test_restore`` reads it back."""

import base64
import json
from dataclasses import replace

import numpy as np

import sfumato as sf
from sfumato import synopsis
from sfumato.metadata.dataset import Dataset
from sfumato.query.task import Stored
from sfumato.synopsis.document import digest, document

DATA = Dataset("d", {"t": sf.Table("t.csv", columns={"a": sf.Integer(0, 2), "b": sf.Boolean()})})
WANTED = synopsis.cells("a", "b")


def test_it_has_the_integers_the_cost_and_the_charge():
    planned = synopsis.plan(DATA, "t", WANTED, rho="0.25")
    body = np.arange(planned.task.size // 8, dtype="<i8").tobytes()
    facts = json.loads(document(planned.task, WANTED, DATA, Stored(body, "c0ffee")))
    assert base64.b64decode(facts["integers"]) == body
    assert (facts["charge_id"], facts["table"], facts["columns"]) == ("c0ffee", "t", ["a", "b"])
    assert facts["allowance"] == {"norm": "L2", "amount": "1/4", "delta": None}
    assert facts["cost"]["rho"] == "0.25"


def test_other_declarations_have_another_digest():
    one = synopsis.plan(DATA, "t", WANTED, rho=1).cube
    replaced = synopsis.plan(replace(DATA, relation=sf.ReplaceOne), "t", WANTED, rho=1).cube
    fewer = synopsis.plan(DATA, "t", synopsis.cells("a") + synopsis.cells("a"), rho=1).cube
    assert len({digest(one), digest(replaced), digest(fewer)}) == 3
