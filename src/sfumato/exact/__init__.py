# SPDX-License-Identifier: Apache-2.0
"""Numbers that only ever round in the safe direction.

May import: ``errors``. Begin with ``rational``: every number a user gives enters there,
exactly, and stays a ``Fraction`` until it is shown. ``rounding`` is the one place where
exp, log, sqrt and floats appear; each function there says which way it errs.
"""

from sfumato.exact.bracket import Bounds, Bracket
from sfumato.exact.rational import decimal_text, power_of_two_at_most, to_fraction

__all__ = ["Bounds", "Bracket", "decimal_text", "power_of_two_at_most", "to_fraction"]
