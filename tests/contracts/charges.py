# SPDX-License-Identifier: Apache-2.0
"""What ledger tests charge: one Laplace count, on an account of the dataset 'd'."""

from collections.abc import Collection
from fractions import Fraction
from pathlib import Path

from sfumato.ledger import Ledger, Request
from sfumato.ledger.journal import Entry
from sfumato.ledger.store.base import EXECUTING, EXPIRED, RESERVED, ChargeRow
from sfumato.metadata.contract import Contract
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Budget, Distance, Norm

BODY = b'{"answer":1}'


def contract(
    budget: Budget, dataset: str = "d", relation: str = "add-remove", unit: str = "(row)"
) -> Contract:
    """The contract of a dataset with one table."""
    return Contract(dataset, relation, {"t": unit}, str(budget.epsilon), str(budget.delta))


def opened(path: Path, epsilon: object = 1, delta: object = 0, dataset: str = "d") -> Ledger:
    """A ledger with one account."""
    ledger, budget = Ledger.open(path), Budget(epsilon, delta)
    ledger.adopt(contract(budget, dataset), budget)
    return ledger


def pure(
    epsilon: object, question: str = "q", *, analyst: str = "owner", dataset: str = "d"
) -> Request:
    """A request that costs exactly ``epsilon``."""
    event = AdditiveNoise(
        DiscreteLaplace(1 / Fraction(str(epsilon))), Distance(Norm.L1, Fraction(1))
    )
    return Request(dataset, analyst, question, f"statement of {question}", event)


def concentrated(rho: object, question: str = "q") -> Request:
    """A request that costs exactly ``rho``."""
    noise = DiscreteGaussian(sigma_squared=1 / (2 * Fraction(str(rho))))
    return Request(
        "d",
        "owner",
        question,
        f"statement of {question}",
        AdditiveNoise(noise, Distance(Norm.L2, Fraction(1))),
    )


def paid(
    ledger: Ledger, request: Request, body: bytes = BODY, *, released: Collection[str] = ()
) -> str:
    """A charge taken through its whole life."""
    charge = ledger.reserve(request)
    ledger.execute(charge)
    ledger.commit(charge, body, released=released)
    return charge


def in_state(ledger: Ledger, state: str, question: str = "q") -> str:
    """A charge of 1/10 brought into a state by legal steps."""
    charge = ledger.reserve(pure("0.1", question))
    if state == RESERVED:
        return charge
    if state == "voided":
        ledger.void(charge)
        return charge
    ledger.execute(charge)
    if state == "committed":
        ledger.commit(charge, BODY)
    elif state != EXECUTING:
        ledger.forfeit(charge, "engine")
    return charge


def state_of(ledger: Ledger, charge: str) -> str:
    """The stored state of a charge."""
    row = ledger.store.read(lambda rows: rows.charge(charge))
    return row.state if row else "unknown"


def entries(ledger: Ledger) -> list[Entry]:
    """The whole journal."""
    return ledger.store.read(
        lambda rows: [entry for chain in rows.chains() for entry in rows.entries(chain)]
    )


def head(ledger: Ledger) -> list[str]:
    """The hashes of the journal: equal heads, equal history."""
    return [entry.hash for entry in entries(ledger)]


def charges(ledger: Ledger) -> list[ChargeRow]:
    """Every charge."""
    return ledger.store.read(lambda rows: [row for row, _ in rows.history()])


def in_pieces(
    ledger: Ledger, places: int = 9, question: str = "q", *, secret: bool = False
) -> tuple[str, int]:
    """A charge of 1/10 that is answered in instalments: its id, and the fence of its worker."""
    charge = ledger.reserve(pure("0.1", question))
    return charge, ledger.start(charge, places, secret=secret)


def end_leases(ledger: Ledger) -> None:
    """What others do once every lease has ended."""
    ledger._close_all(lambda _: None, EXPIRED)
