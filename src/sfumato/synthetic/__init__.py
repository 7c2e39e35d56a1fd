# SPDX-License-Identifier: Apache-2.0
"""Synthetic rows: a table measured under one charge, a model of it, and error bars.

May import ``synopsis``, ``query`` and every room below; reaches private data through a task alone.
Begin with ``fit`` (fit, preview, load) and ``task``, the whole of what is done to the data.
``schema`` has the columns as cells, ``tree`` and ``estimate`` the model, ``rows`` its rows,
``infer`` the error bars, ``report`` the page. ``counts`` and ``select`` have the privacy proofs.
"""

from sfumato.synthetic.beside import Comparison, compare
from sfumato.synthetic.constraints import Constraint, determines, implies, require
from sfumato.synthetic.estimate import Estimator, Fitted, MaximumEntropy, Measurement
from sfumato.synthetic.fit import Options, fit, load, preview
from sfumato.synthetic.infer import Combined, combine
from sfumato.synthetic.mbi import Mbi, from_mbi, to_mbi
from sfumato.synthetic.model import Model
from sfumato.synthetic.preview import Preview
from sfumato.synthetic.public import Public, public
from sfumato.synthetic.report import Report
from sfumato.synthetic.schema import Quantiles

__all__ = [
    "Combined",
    "Comparison",
    "Constraint",
    "Estimator",
    "Fitted",
    "MaximumEntropy",
    "Mbi",
    "Measurement",
    "Model",
    "Options",
    "Preview",
    "Public",
    "Quantiles",
    "Report",
    "combine",
    "compare",
    "determines",
    "fit",
    "from_mbi",
    "implies",
    "load",
    "preview",
    "public",
    "require",
    "to_mbi",
]
