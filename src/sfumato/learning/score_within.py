# SPDX-License-Identifier: Apache-2.0
"""``score_within``: counts, under a charge, the rows that a regression predicts within a
tolerance.
"""

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.learning.examples_of import Examples
from sfumato.learning.model import Model
from sfumato.learning.near import MOST_CODES, NearOutcomes
from sfumato.learning.outcomes import integer_weights
from sfumato.learning.score import OutcomeCounts, Score, charged, require_columns
from sfumato.metadata.column import Integer, Real
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING
from sfumato.query.allowance import allowance
from sfumato.query.session import Session


def score_within(
    session: Session,
    model: Model,
    statement: str,
    *,
    label: str,
    within: Number,
    epsilon: Number,
) -> Score:
    """Counts, under a charge, the rows whose number the model predicts within a tolerance.

    A mean squared error would need a bound on every error, and noise as large as that bound;
    counting near predictions needs noise of one row. ``within`` is in units of the label and is
    rounded down to its steps. Everything else is as in ``score``; the interval is at 95%.

    Raises:
        WrongUse: a model of classes, another label or other features, a tolerance below 0.
        Others as ``score``.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> from sfumato import learning as ln
    >>> rows = pa.table({"age": [20, 70] * 2000, "pay": [100, 900] * 2000})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "pay": sf.Integer(0, 1000)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(20, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     select = "SELECT age, pay FROM people"
    ...     model = ln.fit(session, ln.Ridge(), select, label="pay", rho=1)
    ...     score_within(session, model, select, label="pay", within=200, epsilon=1).accuracy > 0.9
    True
    >>> folder.cleanup()
    """
    if not isinstance(model, Model) or model.classes:
        raise WrongUse(f"model={shown(model)}.", allowed="a model of a number, such as ln.Ridge")
    examples = Examples.of(session.dataset, statement, label, model.bag)
    kind = examples.labelled.type
    if not isinstance(kind, Integer | Real) or examples.bounds != model.bounds:
        raise WrongUse(f"The label {shown(label)}.", allowed="the number that the model predicts")
    require_columns(model, examples)
    codes = to_fraction("within", within) / kind.step
    if codes < 0 or kind.upper_code - kind.lower_code >= MOST_CODES:
        raise WrongUse(
            f"within={shown(within)} of {shown(label)}.",
            allowed=f"from 0, of a label of fewer than {MOST_CODES:,} steps",
        )
    counted = NearOutcomes(
        examples.plan,
        examples.label,
        model.features,
        examples.places,
        _weights(model),
        min(int(codes), MOST_CODES),
    )
    task = OutcomeCounts(counted, model.fingerprint, allowance(epsilon=epsilon))
    return charged(session, task, examples.about)


def _weights(model: Model) -> Integers:
    """Returns the integer weights of the single score of a regression.

    Raises:
        WrongUse: a model file whose numbers cannot be applied to rows.
    """
    weights = integer_weights(model.scores)[-1:]
    codes = [np.array([MISSING, 0, 1], np.int64)] * model.features.columns
    try:
        if len(model.scores) != 1 or weights.shape[1] != model.features.width:
            raise ValueError("weights of another shape")
        list(model.features.shares(codes))
    except (ValueError, IndexError, OverflowError, ArithmeticError) as damaged:
        raise WrongUse("The model is damaged.", allowed="what model.save wrote") from damaged
    return weights
