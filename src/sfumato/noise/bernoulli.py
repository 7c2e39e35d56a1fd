# SPDX-License-Identifier: Apache-2.0
"""Bernoulli draws with a rational bias or a bias of e^-gamma, in integer arithmetic.

Source: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy"
(NeurIPS 2020), Algorithm 1 and Proposition 23. Proof: bernoulli.proof.md.
"""

from sfumato.noise.entropy import Entropy, below


def bernoulli(numerator: int, denominator: int, entropy: Entropy) -> bool:
    """Draws True with probability numerator/denominator, exactly.

    >>> from sfumato.noise.entropy import SYSTEM
    >>> bernoulli(1, 1, SYSTEM), bernoulli(0, 1, SYSTEM)
    (True, False)
    """
    return below(denominator, entropy) < numerator


def bernoulli_exp(numerator: int, denominator: int, entropy: Entropy) -> bool:
    """Draws True with probability exp(-numerator/denominator), exactly; the ratio is >= 0.

    >>> from sfumato.noise.entropy import SYSTEM
    >>> bernoulli_exp(0, 1, SYSTEM)
    True
    """
    while numerator > denominator:
        if not _bernoulli_exp_unit(1, 1, entropy):
            return False
        numerator -= denominator
    return _bernoulli_exp_unit(numerator, denominator, entropy)


def _bernoulli_exp_unit(numerator: int, denominator: int, entropy: Entropy) -> bool:
    """True with probability e^-gamma, gamma in [0, 1]: one draw per term of its power series."""
    term = 1
    while bernoulli(numerator, denominator * term, entropy):
        term += 1
    return term % 2 == 1
