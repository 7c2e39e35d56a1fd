# SPDX-License-Identifier: Apache-2.0
"""The tasks that a sfumato.toml declares: models, synopses, censuses, synthetic fits, questions of
mining, streams.

Each is planned as its own command plans it, with a session that keeps the task instead of running
it. Nothing is opened and nothing charged.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from sfumato.audit.made_up import has_edges
from sfumato.config.census import read_census
from sfumato.config.load import read_declarations
from sfumato.config.mining import read_mining
from sfumato.config.model import read_model
from sfumato.config.named_section import read_section
from sfumato.config.stream import read_stream
from sfumato.config.synopsis import read_synopsis
from sfumato.config.synthetic import read_synthetic
from sfumato.config.toml_file import read_toml
from sfumato.errors import SfumatoError
from sfumato.graph.questions import Degrees, Edges, Shape, Triangles
from sfumato.graph.task import graph_task
from sfumato.learning.fit import fit
from sfumato.metadata.dataset import Dataset
from sfumato.mining.mine import mine
from sfumato.query.allowance import allowance
from sfumato.query.series import Series
from sfumato.query.task import Task
from sfumato.synopsis.geography.census import measure_census
from sfumato.synopsis.measure import measured
from sfumato.synopsis.tick_task import StreamSeries, TickTask
from sfumato.synthetic.fit import fit as fit_rows

# In at most so many ticks a stream goes through the declared time.
_TICKS = 12
_GRAPH_PRICES = {"epsilon": allowance(epsilon=1), "rho": allowance(rho=1)}
_Asks: TypeAlias = Callable[[str, str, Any], object]


@dataclass(frozen=True, slots=True)
class DeclaredTask:
    """A task that a configuration file declares, by its section and name; if it cannot be built,
    ``refusal`` says why.
    """

    name: str
    task: Task | Series | None
    refusal: str = ""


class _Asked(Exception):
    """Carries what a session was asked."""

    def __init__(self, task: Task | Series) -> None:
        self.task = task


class _Asker:
    """Has the members of a session that a fit calls; ends at the first question."""

    renyi_orders: frozenset[Fraction] = frozenset()

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def price(self, task: object) -> Any:
        """Prices nothing: a cost is shown only after a question."""
        return _Unpriced()

    def ask(self, task: Task) -> NoReturn:
        """Raises what was asked."""
        raise _Asked(task)

    def open_series(self, series: Series) -> NoReturn:
        """Raises what was asked."""
        raise _Asked(series)


@dataclass(frozen=True)
class _Unpriced:
    """A cost without items."""

    items: tuple[str, ...] = ()


def declared_tasks(path: str) -> Iterator[DeclaredTask]:
    """Yields the tasks that a configuration file declares, by their sections and names."""
    dataset = read_declarations(path).dataset.described
    for section, ask in _SECTIONS.items():
        named = read_section(path, section) if section in read_toml(path) else ()
        for name in named:
            yield _kept(f"{section}.{name}", ask, path, name, dataset)


def graph_tasks(dataset: Dataset) -> Iterator[DeclaredTask]:
    """Yields every question about the graph of each table of edges, in both families of noise."""
    for name, table in dataset.tables.items():
        if not has_edges(table):
            continue
        for question in (Edges(), Degrees(), Triangles(), Shape()):
            for noise, cost in _GRAPH_PRICES.items():
                try:
                    task = graph_task(dataset, name, question, cost)
                except SfumatoError:
                    # triangles are counted where an edge is the unit
                    continue
                yield DeclaredTask(f"graph of {name}: {question.name}, {noise}", task)


def _kept(place: str, ask: _Asks, path: str, name: str, dataset: Dataset) -> DeclaredTask:
    """Asks, and keeps what was asked."""
    try:
        ask(path, name, _Asker(dataset))
    except _Asked as asked:
        return DeclaredTask(place, asked.task)
    except SfumatoError as refused:
        return DeclaredTask(place, None, type(refused).__name__)
    return DeclaredTask(place, None, "it asks nothing")


def _model(path: str, name: str, session: Any) -> object:
    model = read_model(path, name)
    return fit(session, model.recipe, model.data, **model.asked({}))


def _synopsis(path: str, name: str, session: Any) -> object:
    synopsis = read_synopsis(path, name)
    return measured(session, synopsis.planned(session.dataset, {}), synopsis.strategy)


def _census(path: str, name: str, session: Any) -> object:
    return measure_census(session, read_census(path, name).planned(session.dataset, {}))


def _synthetic(path: str, name: str, session: Any) -> object:
    synthetic = read_synthetic(path, [name], {})
    return fit_rows(session, synthetic.tables, **synthetic.arguments)


def _mining(path: str, name: str, session: Any) -> object:
    mining = read_mining(path, name)
    return mine(session, mining.recipe, mining.data, **mining.cost({}))


def _stream(path: str, name: str, session: Any) -> object:
    dataset = session.dataset
    return session.open_series(_Advanced(read_stream(dataset, path, name), dataset))


class _Advanced(StreamSeries):
    """A stream whose ticks go through all of the time that is declared."""

    def piece(self, place: int, earlier: Mapping[int, bytes]) -> TickTask:
        """Returns the task of a tick, of a length with which the first ones reach the last time."""
        time = self.plan.time
        ticks = min(self.plan.best.ticks.steps, _TICKS)
        self.until = time.lower_code + place * -(-time.size // ticks) - 1
        return super().piece(place, earlier)


_SECTIONS: Mapping[str, _Asks] = {
    "models": _model,
    "synopses": _synopsis,
    "census": _census,
    "synthetic": _synthetic,
    "mining": _mining,
    "streams": _stream,
}
