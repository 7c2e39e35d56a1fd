# SPDX-License-Identifier: Apache-2.0
"""Many callers race for a budget that pays for k of them, from threads and from processes.

``python -m tests.contracts.races '{"place": ..., "rounds": 3}'`` prints the rounds, each with its k
and how many were paid, as JSON.
"""

import json
import os
import random
import sys
import threading
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Ledger, verify
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.store import postgres  # noqa: F401  # before the forks
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, pure
from tests.contracts.crashes import in_child, program

CHECK_THEN_ACT = "check outside the unit of work"


@dataclass(frozen=True)
class Race:
    """Who races; each caller asks one question that costs 1."""

    place: str
    rounds: int
    processes: int = 1
    threads: int = 64
    seed: int = 0
    mutant: str = ""


@dataclass(frozen=True)
class Outcome:
    """A round: ``budget`` is the k of the account."""

    budget: int
    paid: int
    refused: int
    spent: int
    problems: list[str]

    def sound(self, race: Race) -> bool:
        """Whether exactly k were paid, and the ledger says so."""
        callers = race.processes * race.threads
        exact = self.paid == self.budget == self.spent and self.refused == callers - self.budget
        return exact and not self.problems


def run(race: Race) -> list[Outcome]:
    """All rounds, each on a dataset of its own."""
    dice = random.Random(race.seed)
    return [one_round(race, f"d{number}", dice.randrange(1, 64)) for number in range(race.rounds)]


def one_round(race: Race, dataset: str, budget: int) -> Outcome:
    """Opens the account, lets the callers go at once, and counts."""
    in_child(lambda: prepare(race, dataset, budget))
    go, start = os.pipe()
    runners = [
        start_process(race, dataset, number, (go, start)) for number in range(race.processes)
    ]
    os.close(go)
    for _, ready in runners:
        ready.readline()
    os.close(start)
    counts = [json.loads(result.read()) for _, result in runners]
    for child, result in runners:
        result.close()
        os.waitpid(child, 0)
    spent, problems = in_child(lambda: look(race, dataset))
    faults = [fault for count in counts for fault in count["faults"]]
    paid, refused = (sum(count[name] for count in counts) for name in ("paid", "refused"))
    return Outcome(budget, paid, refused, spent, problems + faults)


def start_process(race: Race, dataset: str, number: int, gate: tuple[int, int]) -> tuple[int, Any]:
    """A process whose callers wait for the gate to be closed by the parent."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gate[1])
        with os.fdopen(writing, "w") as out:
            ledger = Ledger.open(race.place)
            out.write("ready\n")
            out.flush()
            os.read(gate[0], 1)
            json.dump(compete(race, ledger, dataset, number), out)
            ledger.close()
        os._exit(0)
    os.close(writing)
    return child, os.fdopen(reading)


def compete(race: Race, ledger: Ledger, dataset: str, number: int) -> dict[str, Any]:
    """One question a thread, all at the same moment."""
    together, found = threading.Barrier(race.threads), {"paid": 0, "refused": 0, "faults": []}
    if race.mutant == CHECK_THEN_ACT:
        LockedAccounts.require = lambda *_: None  # type: ignore[method-assign,assignment]

    def call(index: int) -> None:
        request = pure(
            1, f"{dataset} {number} {index}", dataset=dataset, analyst=f"analyst {index % 5}"
        )
        try:
            together.wait()
            if race.mutant == CHECK_THEN_ACT:
                assert ledger.balance(dataset).left.epsilon
                together.wait()
            charge = ledger.reserve(request)
            ledger.execute(charge)
            ledger.commit(charge, b"answer")
            outcome = "paid"
        except BudgetExceeded:
            outcome = "refused"
        except Exception as error:
            outcome = "faults"
            found["faults"].append(repr(error))
            return
        with counting:
            found[outcome] += 1

    counting = threading.Lock()
    threads = [threading.Thread(target=call, args=(index,)) for index in range(race.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def prepare(race: Race, dataset: str, budget: int) -> None:
    """An account that pays for ``budget`` questions."""
    ledger = Ledger.open(race.place)
    ledger.adopt(contract(Budget(budget), dataset), Budget(budget))
    ledger.close()


def look(race: Race, dataset: str) -> tuple[int, list[str]]:
    """What the account has spent, and what is wrong with the ledger."""
    ledger = Ledger.open(race.place)
    spent = ledger.balance(dataset).spent.epsilon or 0
    problems = list(verify(ledger).problems)
    ledger.close()
    return spent // 10**12, problems


def raced(race: Race) -> list[Outcome]:
    """``run`` in a process of its own."""
    return [Outcome(**outcome) for outcome in program("races", **asdict(race))]


if __name__ == "__main__":
    print(json.dumps([asdict(outcome) for outcome in run(Race(**json.loads(sys.argv[1])))]))
