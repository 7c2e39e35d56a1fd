# SPDX-License-Identifier: Apache-2.0
"""Writes a synopsis as JSON: noisy integers, layers, workload, cost and charge id.

All of it was released, so the file needs no more protection than the answers. ``restore`` reads it.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import charge_for
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.plan.show import form
from sfumato.privacy.event import Json
from sfumato.query.allowance import Allowance
from sfumato.query.cost import cost_of_steps
from sfumato.query.task import Stored
from sfumato.synopsis.dense import DenseStack
from sfumato.synopsis.grid_task import GridTask
from sfumato.synopsis.layout import Layout
from sfumato.synopsis.measurement import LayersTask, every_value
from sfumato.synopsis.strategy import Strategy
from sfumato.synopsis.wanted import Kind, Term, Wanted
from sfumato.synopsis.workload import Cells, GivenKind, Prefixes, Ranges

FORMAT = 1
# The names of kinds of queries.
KINDS: Mapping[str, Kind] = {"cells": Cells, "prefixes": Prefixes, "ranges": Ranges}


def document(task: LayersTask | GridTask, wanted: Wanted, dataset: Dataset, stored: Stored) -> str:
    """Returns a measured synopsis as JSON: its declarations, cost, charge, strategy and noisy
    integers.
    """
    event = task.event
    cost = cost_of_steps(charge_for(account(event)), task.kind, event)
    facts: dict[str, Json] = {
        "kind": task.kind,
        "format": FORMAT,
        "charge_id": stored.charge,
        "dataset": dataset.name,
        "version": dataset.version,
        "table": task.table,
        "columns": list[Json](task.plan.cube.names),
        "declared": digest(task.plan),
        "cost": cost.to_json(),
        "allowance": _allowance(task.allowance),
        "wanted": [_term(term) for term in wanted.terms],
        "strategy": _layers(task),
        "integers": _bytes(stored.body),
    }
    return json.dumps(facts, ensure_ascii=False)


def digest(plan: BoundedCube) -> str:
    """Returns a hash of the declarations on which the measured integers depend."""
    return hashlib.sha256(form([plan], every_value(plan)).encode()).hexdigest()


def _layers(task: LayersTask | GridTask) -> dict[str, Json]:
    if isinstance(task, LayersTask):
        return _strategy(task.strategy)
    return _layout(task.layout)


def _allowance(allowed: Allowance) -> dict[str, Json]:
    return {
        "norm": allowed.norm.name,
        "amount": str(allowed.amount),
        "delta": None if allowed.delta is None else str(allowed.delta),
    }


def _term(term: Term) -> dict[str, Json]:
    factors: list[Json] = [[name, _kind(kind)] for name, kind in term.factors]
    return {"weight": str(term.weight), "factors": factors}


def _kind(kind: Kind) -> Json:
    if isinstance(kind, GivenKind):
        return [_row(row) for row in kind.rows]
    return next(name for name, known in KINDS.items() if known is kind)


def _row(runs: tuple[tuple[float, int], ...]) -> Json:
    return [list(run) for run in runs]


def _strategy(strategy: Strategy) -> dict[str, Json]:
    stack = strategy.stack
    stored = _shared(strategy.name, strategy.shares, strategy.factor) | {"cells": stack.cells}
    if isinstance(stack, DenseStack):
        return stored | {
            "diagonal": _bytes(stack.layer.diagonal),
            "rows": _bytes(stack.layer.rows),
        }
    layers: list[Json] = [[layer.width, layer.halves] for layer in stack.layers]
    return stored | {"widths": list[Json](stack.widths), "layers": layers}


def _layout(layout: Layout) -> dict[str, Json]:
    chains: list[Json] = []
    for chain in layout.grid.chains:
        chains.append([chain.cells, list[Json](chain.widths)])
    layers: list[Json] = []
    for place in layout.grid.layers:
        layers.append([list[Json](each) for each in place])
    found = _shared(layout.name, layout.shares, layout.factor)
    return found | {"chains": chains, "layers": layers}


def _shared(name: str, shares: tuple[Fraction, ...], factor: float) -> dict[str, Json]:
    return {"name": name, "shares": [str(share) for share in shares], "factor": factor}


def _bytes(content: bytes) -> str:
    return base64.b64encode(content).decode()
