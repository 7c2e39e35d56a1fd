# SPDX-License-Identifier: Apache-2.0
"""Synthetic data: private tables are measured under one charge, and rows are drawn from a model.

Begin with ``fit`` (fit, preview, load). ``task`` is everything that is done to private data: noisy
counts of single columns and of selected pairs, with proofs in ``counts`` and ``select``. From the
released counts, ``tree`` and ``estimate`` compute a graphical model, ``rows`` draws synthetic rows,
``infer`` error bars, ``report`` a page on quality. ``schema`` describes columns as cells; modules
named ``relational*`` and ``children`` are for several tables. This room may import ``synopsis``,
``query`` and every room below; it reads private data through tasks only.
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
