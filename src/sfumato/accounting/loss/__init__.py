# SPDX-License-Identifier: Apache-2.0
"""Privacy loss distributions of plans that are FIXED in advance, with proved error bounds.

Begin with ``pair``: the two distributions whose log ratio is the loss. ``lattice`` holds a loss
rounded to a lattice, with bounds of the errors; ``discretise`` rounds a pair, ``compose`` adds
losses, ``solve`` reads brackets of epsilon and delta from the sum. Nothing here is valid where a
later event is chosen after an earlier answer: ``accounting.curve`` takes plans only.
"""

from sfumato.accounting.loss.atoms import Atoms
from sfumato.accounting.loss.compose import coarsen, merge, power, product
from sfumato.accounting.loss.discretise import discretise
from sfumato.accounting.loss.edges import Pair
from sfumato.accounting.loss.lattice import Lattice
from sfumato.accounting.loss.pair import Gaussian, Ramp, Sampled
from sfumato.accounting.loss.replaced import Replaced
from sfumato.accounting.loss.shifted import shifted
from sfumato.accounting.loss.solve import delta_at, epsilon_at, widths_at
from sfumato.accounting.loss.swapped import Swapped, SwappedNormal

__all__ = [
    "Atoms",
    "Gaussian",
    "Lattice",
    "Pair",
    "Ramp",
    "Replaced",
    "Sampled",
    "Swapped",
    "SwappedNormal",
    "coarsen",
    "delta_at",
    "discretise",
    "epsilon_at",
    "merge",
    "power",
    "product",
    "shifted",
    "widths_at",
]
