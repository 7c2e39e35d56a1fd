# SPDX-License-Identifier: Apache-2.0
"""Trains a network on the rows of a SELECT, charged once; the same training again is free."""

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.budget import budgeted
from sfumato.learning.examples_of import Examples
from sfumato.learning.fit import Progress
from sfumato.learning.torch.network import Network
from sfumato.learning.torch.network_model import NetworkModel
from sfumato.learning.torch.optimizers import Weights
from sfumato.learning.torch.training import NetworkTraining, loaded
from sfumato.query.session import Session


def fit(
    session: Session,
    network: Network,
    statement: str,
    *,
    label: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    progress: Progress | None = None,
) -> NetworkModel:
    """Trains a network on the rows of a SELECT, and charges the account once.

    ``rho``, or ``epsilon`` with ``delta``, as in ``learning.fit``. A training that was interrupted
    goes on from its last checkpoint when it is called again; one that is complete, with a module
    that starts with the same weights, is returned from the ledger.

    Raises:
        UnknownName, WrongUse, MissingDeclaration, UnsupportedSql: before anything is charged.
        BudgetExceeded: the account cannot pay; nothing was charged.
        EngineFailed: the steps since the last checkpoint are lost; call it again.

    >>> import sfumato as sf, pyarrow as pa, tempfile, torch
    >>> rows = pa.table({"age": [20, 70] * 2000, "smoker": [True, False] * 2000})
    >>> people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "smoker": sf.Boolean()})
    >>> folder = tempfile.TemporaryDirectory()
    >>> loss = torch.nn.CrossEntropyLoss(reduction="none")
    >>> from sfumato.learning.torch import SGD
    >>> network = Network(torch.nn.Linear(1, 2), loss, SGD(5.0, 0.5), size=4000, steps=60)
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10, "1e-5"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     model = fit(session, network, "SELECT age, smoker FROM people", label="smoker",
    ...                 epsilon=2, delta="1e-6")
    >>> model.predict({"age": [18, 72]})
    ['True', 'False']
    >>> folder.cleanup()
    """
    if not isinstance(network, Network):
        raise WrongUse(f"network={shown(network)}.", allowed="Network(module, loss, optimizer)")
    examples = Examples.of(session.dataset, statement, label)
    budget = budgeted(epsilon=epsilon, rho=rho, delta=delta)
    training = network.training(examples, budget, session.renyi_orders)
    cost = session.price(training)
    with session.open_series(training) as series:
        while series.left:
            series.next()
            if progress is not None:
                progress(series.places - series.left, series.places)
        stored = dict(series.earlier)
    state = _last(training, stored)
    trained = training.sums.network
    trained.load(loaded(state.weights))
    return NetworkModel(
        trained.plain(),
        training.sums.reading,
        examples.columns,
        examples.classes,
        examples.bounds,
        cost,
        series.charge,
    )


def _last(
    training: NetworkTraining,
    stored: dict[int, bytes],
) -> Weights:
    """The last checkpoint."""
    if not stored:
        raise WrongUse(
            "A run of which every piece was begun and none was stored.",
            remedy="It is paid for and lost: train another network.",
        )
    return Weights.from_bytes(stored[max(stored)])
