# SPDX-License-Identifier: Apache-2.0
"""Private answers: noise, event and error bound, together once.

May import: ``accounting``, ``metadata``, ``privacy``, ``noise``, ``exact``, ``errors``.
Begin with ``additive``: noise on integers, Laplace under an L1 and Gaussian under an L2
sensitivity.
"""

from sfumato.mechanisms.additive import AdditiveMechanism, gaussian, laplace

__all__ = ["AdditiveMechanism", "gaussian", "laplace"]
