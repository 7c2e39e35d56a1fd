# SPDX-License-Identifier: Apache-2.0
"""The central privacy guarantee of shuffled batches: smaller than the local epsilon of a report.

Source: Feldman, McMillan, Talwar, "Hiding Among the Clones" (FOCS 2021); proof in
accounting/amplify.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.amplify import shuffled
from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.privacy.event import Shuffled
from sfumato.telemetry.task import ReportTask


@dataclass(frozen=True, slots=True)
class Central:
    """The central (shuffle-amplified) guarantee of one batch of reports, and of all batches of a
    device's life.

    ``hidden`` is the number of honest reports in a batch, the device's own included.

    >>> Central(90_000, Fraction(1, 30), Fraction(1, 10**8), Fraction(1), Fraction(3, 10**7)).hidden
    90000
    """

    hidden: int
    epsilon: Fraction
    delta: Fraction
    life_epsilon: Fraction
    life_delta: Fraction


def central(task: ReportTask, delta: Number, *, dishonest: Number = 0) -> Central:
    """Returns the central guarantee that shuffling gives a sealed task without memory.

    It is stated for batches of ``min_batch`` reports, of which the share ``dishonest`` may belong
    to an attacker, and holds against anyone who sees the shuffled batches only. The life is the sum
    over all reports of a device (basic composition). ``delta`` is that of one batch.

    Raises:
        InvalidDeclaration: the task is not sealed, so nobody shuffles; or it has a memory, and a
            permanent answer is not amplified.

    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1()).public_key()
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=2, min_batch=100_000,
    ...                    aggregator=key)
    >>> found = central(task, "1e-8", dishonest="0.1")
    >>> found.hidden, found.epsilon < Fraction(1, 25), found.life_epsilon == 2 * found.epsilon
    (90000, True, True)
    """
    if not task.aggregator or task.memory:
        raise InvalidDeclaration(
            f"The task {task.id!r} has no central guarantee.",
            allowed="sealed tasks without memory: aggregator=, memory=0",
        )
    share = to_fraction("dishonest", dishonest)
    if not 0 <= share < 1:
        raise InvalidDeclaration("dishonest= outside 0 to 1.", allowed="0 or more, below 1")
    exact = positive("delta", delta)
    hidden = int(task.min_batch * (1 - share))
    found = shuffled(Shuffled(task.oracle.event, max(hidden, 1)), exact)
    epsilon = min(Fraction(found.upper), task.first_epsilon)
    return Central(hidden, epsilon, exact, task.epochs * epsilon, task.epochs * exact)
