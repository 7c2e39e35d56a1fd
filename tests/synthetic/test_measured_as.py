# SPDX-License-Identifier: Apache-2.0
"""A stored fit is read by the declarations that it was measured with, and by no others."""

import numpy as np
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import WrongUse
from sfumato.query.allowance import allowance
from sfumato.synthetic.fit import Options, _task
from sfumato.synthetic.measured_as import measured_as, require_same
from sfumato.synthetic.task import FitTask, Taken
from tests.synthetic.clinics import tiny
from tests.synthetic.towns import COLUMNS, session, town

# Each is read without an error, were it not refused: other counts, or the same in other places.
OTHERS = {
    "job": sf.Category("none", "smith", "nurse", "clerk", missing=""),
    "age": sf.Integer(0, 89),
}


def test_a_stored_fit_of_other_declarations_is_refused_by_the_column(tmp_path, monkeypatch):
    rows = town(300)
    with session(tmp_path, rows) as opened:
        charge = sy.fit(opened, "people", rho="0.1", options=sy.Options(rounds=2)).charge_id
    for name, kind in OTHERS.items():
        columns = {**COLUMNS, name: kind}
        refused = pytest.raises(WrongUse, match=f"The declaration of '{name}' in 'people'")
        with session(tmp_path, rows, columns=columns) as opened, refused:
            sy.load(opened, charge)
    with session(tmp_path, rows, columns={**COLUMNS, "job": OTHERS["job"]}) as opened:
        # without the check, smiths would be nurses
        monkeypatch.setattr(FitTask, "require_measured", lambda *_: None)
        assert sy.load(opened, charge).rows > 0


def test_several_tables_and_their_limits_are_checked():
    def fit_of(tables, relation=sf.AddRemove):
        return _task(tiny(relation), tables, allowance(rho=1), options=Options(rounds=2))

    one, other = fit_of("patients"), fit_of("patients", sf.ReplaceOne)
    several = fit_of(["patients", "visits"])
    require_same(one.schema, measured_as(one.schema))
    # a fit from before does not state its declarations
    several.require_measured({})
    parts = [measured_as(each.schema) for each in several.parts]
    several.require_measured({"measured_as": parts})
    with pytest.raises(WrongUse, match="The limits or the relation of 'patients'"):
        one.require_measured({"measured_as": measured_as(other.schema)})
    with pytest.raises(WrongUse, match="The declaration of 'w' in 'visits'"):
        several.require_measured({"measured_as": [parts[0], {**parts[1], "w": "?"}]})


def test_too_few_counts_are_refused():
    with pytest.raises(WrongUse, match="fewer counts"):
        Taken(np.arange(3)).next(4)
