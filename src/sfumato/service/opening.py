# SPDX-License-Identifier: Apache-2.0
"""Opens everything that a service is made of, in order, and closes it."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from sfumato.service.credentials import Digests
from sfumato.service.desk import Desk
from sfumato.service.jobs import Jobs
from sfumato.service.office import Office
from sfumato.service.people import People
from sfumato.service.requests import Requests
from sfumato.service.served import Datasets
from sfumato.service.settings import Settings
from sfumato.service.state import State
from sfumato.service.trail import Trail


class Directory:
    """The state file of a service, opened without its data, to manage people and tokens.

    Raises:
        StateFailed: the state cannot be used.
    """

    def __init__(self, state: Path, clock: Callable[[], float] = time.time) -> None:
        self.state = State(state)
        self.trail = Trail(self.state, clock)
        self.people = People(
            self.state, Digests(state.with_name(f"{state.name}.key")), self.trail, clock
        )

    def close(self) -> None:
        """Closes the state file."""
        self.state.close()

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Service:
    """An open service: people, datasets, ledgers and background questions; a context manager.

    Raises:
        SfumatoError: a dataset, a ledger or the state cannot be opened.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        with ExitStack() as failed:
            directory = Directory(settings.state)
            failed.callback(directory.close)
            self.people, self.trail = directory.people, directory.trail
            requests = Requests(directory.state, directory.trail)
            self.datasets = Datasets(settings.datasets, settings.lanes)
            failed.callback(self.datasets.close)
            self.desk = Desk(self.datasets, self.people, requests)
            self.office = Office(self.desk, self.people, requests, self.trail)
            self.jobs = Jobs(waiting=settings.waiting, quantum=settings.quantum)
            self._closing = failed.pop_all()

    def close(self) -> None:
        """Stops running questions, then closes the datasets, their ledgers and the state file."""
        self.jobs.drain(0)
        self._closing.close()

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
