# SPDX-License-Identifier: Apache-2.0
"""Exact rational numbers, and functions that round in a stated direction.

May import: ``errors``. Begin with ``rational``: every number from a user is converted there
exactly, and stays a ``Fraction`` until it is shown. Only ``rounding`` computes exp, log, sqrt and
floats; every function there states its direction of rounding.
"""

from sfumato.exact.bracket import Bounds, Bracket
from sfumato.exact.rational import decimal_text, power_of_two_at_most, to_fraction

__all__ = ["Bounds", "Bracket", "decimal_text", "power_of_two_at_most", "to_fraction"]
