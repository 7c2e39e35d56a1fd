# SPDX-License-Identifier: Apache-2.0
"""Flower: a step of SecAgg+, and Adult fitted by three hospitals with its kinds of privacy.

Clients are its ``ClientApp`` with its modifiers, the server is its strategy and its workflow; a
``Grid`` in this process stands for the network. Noise that each hospital adds protects a person if
the client says how far a person moves its step; noise of the server protects a hospital.
"""

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np
from flwr.app import (  # type: ignore[import-not-found]
    ArrayRecord,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.client import NumPyClient  # type: ignore[import-not-found]
from flwr.client.mod import secaggplus_mod  # type: ignore[import-not-found]
from flwr.clientapp import ClientApp  # type: ignore[import-not-found]
from flwr.clientapp.mod import LocalDpMod, fixedclipping_mod  # type: ignore[import-not-found]
from flwr.common import ndarrays_to_parameters  # type: ignore[import-not-found]
from flwr.common.serde import (  # type: ignore[import-not-found]
    recorddict_from_proto,
    recorddict_to_proto,
)
from flwr.server import LegacyContext, ServerConfig  # type: ignore[import-not-found]
from flwr.server.strategy import FedAvg as LegacyFedAvg  # type: ignore[import-not-found]
from flwr.server.workflow import (  # type: ignore[import-not-found]
    DefaultWorkflow,
    SecAggPlusWorkflow,
)
from flwr.serverapp import Grid  # type: ignore[import-not-found]
from flwr.serverapp.strategy import (  # type: ignore[import-not-found]
    DifferentialPrivacyClientSideFixedClipping,
    FedAvg,
)
from flwr.supercore.run import Run  # type: ignore[import-not-found]
from flwr.supercore.task_identity import TaskIdentity  # type: ignore[import-not-found]

from benchmarks.systems import Call, Make
from benchmarks.systems.persons import Numbers, accuracy, one_hot, persons

PACKAGES = ("flwr", "numpy")
SITES, SITE_ROWS, DELTA = 3, 5_000, 1e-5
# Steps and their rate, at the smallest cost and at others: of 10, 25, 50 and 0.5, 1, 2 the best.
SMALL, FEW, MANY = 0.001, (25, 1.0), (50, 2.0)
# The norm that the step of a hospital is clipped to, where a hospital is protected.
CLIP = 1.0
logging.getLogger("flwr").setLevel(logging.ERROR)


class Here(Grid):  # type: ignore[misc]
    """Clients in this process; counts the CPU seconds and the bytes of the first."""

    def __init__(self, apps: list[Any]) -> None:
        self._apps = {place + 1: app for place, app in enumerate(apps)}
        self._states = {
            node: Context(1, node, {"partition": node - 1}, RecordDict(), {}) for node in self._apps
        }
        self.cpu, self.sent = 0.0, 0

    def set_run(self, run: Any) -> None:
        """There is one run."""

    @property
    def run(self) -> Any:
        """The one run."""
        return Run.create_empty(1)

    def create_message(self, *given: Any, **named: Any) -> Any:
        """Nobody asks for it."""
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Any]) -> Iterable[str]:
        """Nobody asks for it."""
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Any]:
        """Nobody asks for it."""
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        """The clients."""
        return list(self._apps)

    def send_and_receive(
        self, messages: Iterable[Any], *, timeout: float | None = None
    ) -> Iterable[Any]:
        """The replies of the clients, in turn."""
        return [self._replied(message) for message in messages]

    def _replied(self, message: Any) -> Any:
        node = message.metadata.dst_node_id
        # one object for all clients would be changed by the first
        message.content = recorddict_from_proto(recorddict_to_proto(message.content))
        begun = time.process_time()
        reply = self._apps[node](message, self._states[node])
        body = recorddict_to_proto(reply.content).SerializeToString()
        if node == 1:
            self.cpu += time.process_time() - begun
            self.sent += len(body)
        if reply.has_error():
            raise ValueError(reply.error)
        return reply


class Vector(NumPyClient):  # type: ignore[misc]
    """A client whose step is a vector of its own."""

    def __init__(self, numbers: int) -> None:
        self._vector = np.linspace(-1, 1, numbers)

    def fit(self, parameters: Any, config: Any) -> tuple[list[Numbers], int, dict[str, Any]]:
        """The vector, as the parameters of one example."""
        return [self._vector], 1, {}


def _secagg(numbers: int) -> Here:
    """One round of SecAgg+ among three clients, two of whom can open the key of the third."""
    client = Vector(numbers).to_client()
    apps = [
        ClientApp(client_fn=lambda context: client, mods=[secaggplus_mod]) for _ in range(SITES)
    ]
    grid = Here(apps)
    strategy = LegacyFedAvg(
        min_fit_clients=SITES,
        min_available_clients=SITES,
        fraction_evaluate=0.0,
        initial_parameters=ndarrays_to_parameters([np.zeros(numbers)]),
    )
    context = LegacyContext(
        Context(1, 0, {}, RecordDict(), {}), ServerConfig(num_rounds=1), strategy
    )
    DefaultWorkflow(fit_workflow=SecAggPlusWorkflow(num_shares=SITES, reconstruction_threshold=2))(
        grid, context
    )
    return grid


def _features(split: str) -> Numbers:
    """Zeros and ones of all columns in public bins, and a constant."""
    shown = one_hot(split, binned=True)
    return np.hstack([shown, np.ones((len(shown), 1))])


def _chances(rows: Numbers, weights: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-(rows @ weights))))


def _steps(rho: float) -> tuple[int, float]:
    return FEW if rho < SMALL else MANY


def _hospital(rows: Numbers, rich: Numbers, rate: float, mods: list[Any]) -> Any:
    """A client that takes one step down the mean gradient of its persons."""
    app = ClientApp()

    @app.train(mods=mods)  # type: ignore[untyped-decorator]
    def train(message: Any, context: Any) -> Any:
        (weights,) = message.content["arrays"].to_numpy_ndarrays()
        slope = rows.T @ (_chances(rows, weights) - rich) / SITE_ROWS
        content = {
            "arrays": ArrayRecord([weights - rate * slope]),
            "metrics": MetricRecord({"num-examples": SITE_ROWS}),
        }
        return Message(RecordDict(content), reply_to=message)

    return app


def _fitted(strategy: Any, mods: list[Any], rho: float, seed: int) -> float:
    """The accuracy of three hospitals, split by age as ours are."""
    rows, rich = _features("train"), persons("train").rich
    order = np.random.default_rng(seed).permutation(len(rows))[: SITES * SITE_ROWS]
    order = order[np.argsort(persons("train").codes["age"][order], kind="stable")]
    steps, rate = _steps(rho)
    apps = [_hospital(rows[part], rich[part], rate, mods) for part in np.split(order, SITES)]
    start = ArrayRecord([np.zeros(rows.shape[1])])
    result = strategy.start(Here(apps), start, num_rounds=steps)
    (weights,) = result.arrays.to_numpy_ndarrays()
    return accuracy(_chances(_features("test"), weights))


def _average() -> Any:
    return FedAvg(fraction_evaluate=0.0, min_train_nodes=SITES, min_available_nodes=SITES)


def _person(rho: float, seed: int) -> float:
    """Each hospital adds the whole noise that hides one person of it."""
    # no gradient of a person is longer than its features
    reach = sqrt(len(persons("train").codes) + 1)
    # the epsilon at which its formula gives the noise of this rho over all steps
    steps, rate = _steps(rho)
    epsilon = sqrt(2 * log(1.25 / DELTA)) * sqrt(2 * rho / steps)
    noise = LocalDpMod(rate * reach, rate * reach / SITE_ROWS, epsilon, DELTA)
    return _fitted(_average(), [noise], rho, seed)


def _whole_hospital(rho: float, seed: int) -> float:
    """The server adds noise that hides one hospital."""
    strategy = DifferentialPrivacyClientSideFixedClipping(
        _average(), sqrt(_steps(rho)[0] / (2 * rho)), CLIP, SITES
    )
    return _fitted(strategy, [fixedclipping_mod], rho, seed)


def _work(call: Callable[[float, int], float]) -> Make:
    def make(scale: float, n: int) -> Call:
        return partial(call, scale, n)

    return make


TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0
WORKS: dict[str, Make] = {
    "SecAgg+, CPU ms": _work(lambda scale, n: 1000 * _secagg(n).cpu),
    "SecAgg+, kB": _work(lambda scale, n: _secagg(n).sent / 1000),
    "Adult, a person protected": _work(_person),
    "Adult, a hospital protected": _work(_whole_hospital),
}
