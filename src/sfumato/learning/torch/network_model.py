# SPDX-License-Identifier: Apache-2.0
"""The fitted model of ``Network``: predict, save and load; costs no budget."""

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
import torch
from torch import nn

from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.learning.bag import Bag
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Floats
from sfumato.learning.frames import FrameColumn, codes_of, read_columns, rounding_note, with_report
from sfumato.learning.scorable import Scorable
from sfumato.learning.stored import numbers, read_cost, text, texts, whole
from sfumato.learning.torch.blocks import MOST_ROWS
from sfumato.learning.torch.choice import FAILURES, first_line
from sfumato.learning.torch.fingerprint import fingerprint
from sfumato.learning.torch.isolation import require_outputs_apart
from sfumato.learning.torch.made_up import trying
from sfumato.learning.torch.outcomes import NetworkOutcomes
from sfumato.learning.torch.reading import Input, Reading, TextReading
from sfumato.learning.torch.recorded import Recorded
from sfumato.privacy.event import Json
from sfumato.query.cost import Cost

_FORMAT = 1
# What reading a file that is none raises.
_DAMAGED = (
    InvalidDeclaration,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    RecursionError,
    EOFError,
    BadZipFile,
)
# The names of arrays in a file: what the model reads, and the state of the module.
_FORM, _STATE = "model", "state."
# Outputs of one module in two copies are nearer than this.
_NEAR = 1e-4
# Rows that are predicted at once.
_AT_ONCE = MOST_ROWS


@dataclass(frozen=True, repr=False)
class NetworkModel(Scorable):
    """The fitted model of ``Network``: a trained torch module, and descriptions of the columns that
    it reads.

    ``module`` is an ordinary torch module in evaluation mode.
    """

    module: nn.Module
    reading: Reading
    columns: tuple[FrameColumn, ...]
    classes: tuple[str, ...]
    bounds: tuple[float, float]
    cost: Cost
    charge: str

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        kind = type(self.module).__name__
        about = f"network {kind} of {names} (cost: {self.cost}, charge {self.charge})"
        return about + rounding_note(self.columns)

    def predict_proba(
        self,
        frame: Any,
    ) -> Floats:
        """Returns class probabilities: softmax of the outputs, or the logistic function of a single
        output.

        Raises:
            WrongUse: the label is a number: see ``predict``.
            UnknownName: the frame lacks a feature.
            WrongUse: columns of unequal length, or of a type that holds no declared value.
        """
        if not self.classes:
            raise WrongUse("Probabilities of a number.", remedy="model.predict(frame)")
        scores = self._outputs(frame)
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], 1)
        return np.asarray(torch.softmax(scores, 1).numpy())

    def predict(self, frame: Any, *, report: bool = False) -> Any:
        """Returns the most probable class of each row; the number if the label is a number.

        With ``report`` returns a pair: the predictions, and a ``ColumnReport`` of unread values per
        column.
        """
        return with_report(self._predicted(frame), frame, self.columns, report=report)

    def _predicted(self, frame: Any) -> list[str] | Floats:
        if self.classes:
            best = self.predict_proba(frame).argmax(axis=1)
            return [self.classes[place] for place in best]
        lower, upper = self.bounds
        shares = np.clip(self._outputs(frame)[:, 0].numpy(), 0, 1)
        found: Floats = lower + (upper - lower) * shares
        return found

    @property
    def fingerprint(self) -> str:
        """A hash of the module with its weights, of its inputs and of the classes."""
        return fingerprint(self.module, self.reading, self.classes)

    def outcomes(
        self,
        examples: Examples,
    ) -> NetworkOutcomes:
        """Returns the statistic that counts the model's right and wrong predictions on private
        examples.

        Raises:
            WrongUse: a module that mixes or keeps rows.
        """
        places = zip(self.reading.inputs, examples.places, strict=True)
        inputs = tuple(replace(each, place=place) for each, place in places)
        label = replace(self.reading.label, place=examples.label.place)
        reading = replace(self.reading, inputs=inputs, label=label)
        with trying(self.module, no_loss, "one that takes all inputs within the declared bounds"):
            network = Recorded(self.module, no_loss)
            require_outputs_apart(network, reading, MOST_ROWS)
        return NetworkOutcomes(examples.plan, examples.label, reading, network)

    def save(
        self,
        path: str | Path,
    ) -> None:
        """Writes the weights and the inputs; ``load`` reads the file. It holds no code."""
        form: dict[str, Json] = {
            "format": _FORMAT,
            "reading": asdict(self.reading),
            "columns": [column.to_json() for column in self.columns],
            "classes": list(self.classes),
            "bounds": list(self.bounds),
            "cost": self.cost.to_json(),
            "charge": self.charge,
        }
        with Path(path).open("wb") as file:
            _write(file, form, self.module)

    def _outputs(
        self,
        frame: Any,
    ) -> torch.Tensor:
        """Returns the outputs of the module as (rows, outputs) in float64."""
        codes = codes_of(frame, self.columns)
        given = torch.from_numpy(self.reading.floats(np.stack(codes, axis=1)))
        with torch.no_grad():
            parts = [self.module(part) for part in given.split(_AT_ONCE)]
        outputs = torch.cat(parts)
        # -1 says nothing of an empty frame
        return outputs.double().reshape(len(outputs), math.prod(outputs.shape[1:]))


def require_released(
    network: Recorded,
    reading: Reading,
) -> None:
    """Raises WrongUse, before the charge, for a module whose trained copy could not be returned,
    saved and loaded.

    Raises:
        WrongUse: it says what fails.
    """
    x, _ = reading.drawn(_AT_ONCE, 1)
    try:
        module = network.plain(network.start)
        file = BytesIO()
        _write(file, {}, module)
        _, state = _contents(file.getvalue())
        again = _filled(network.plain(network.start), state)
        with torch.no_grad():
            outputs, others = module(x), again(x)
    except FAILURES as failure:
        raise WrongUse(
            "A module that fails in evaluation mode, or where it is saved and loaded.",
            allowed="one whose state_dict holds numbers that NumPy has",
            remedy=f"It says: {type(failure).__name__}: {first_line(failure)}",
        ) from failure
    # several outputs are the owner's to compare
    is_one = isinstance(outputs, torch.Tensor)
    if is_one and not torch.allclose(outputs, others, rtol=_NEAR, atol=_NEAR, equal_nan=True):
        raise WrongUse("A module that predicts something else once it is saved and loaded.")


def _write(
    file: BinaryIO,
    form: Mapping[str, Json],
    module: nn.Module,
) -> None:
    """Writes the JSON form and the state of a module."""
    arrays = {
        f"{_STATE}{name}": value.detach().cpu().numpy()
        for name, value in module.state_dict().items()
    }
    arrays[_FORM] = np.frombuffer(json.dumps(form).encode(), np.uint8)
    np.savez(file, allow_pickle=False, **arrays)


def _contents(written: bytes) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Reads the JSON form and the state that ``_write`` wrote."""
    with np.load(BytesIO(written), allow_pickle=False) as arrays:
        form = json.loads(arrays[_FORM].tobytes())
        state = {
            name.removeprefix(_STATE): torch.from_numpy(arrays[name])
            for name in arrays.files
            if name != _FORM
        }
    return form, state


def no_loss(
    outputs: torch.Tensor,
    labels: torch.Tensor,
) -> torch.Tensor:
    """Returns the sum of each row's outputs; stands in for a loss function where a network only
    predicts.
    """
    return outputs.flatten(1).sum(1)


def load(
    path: str | Path,
    module: nn.Module,
) -> NetworkModel:
    """Reads a file of ``NetworkModel.save`` into a copy of a module of the same architecture.

    A module is code, so the file cannot contain it.

    Raises:
        WrongUse: another file, or another module.

    >>> from sfumato.errors import WrongUse
    >>> try:
    ...     load("nowhere/digits.sfm", nn.Linear(1, 2))
    ... except FileNotFoundError:
    ...     print("no such file")
    no such file
    """
    try:
        form, state = _contents(Path(path).read_bytes())
        if form["format"] != _FORMAT:
            raise ValueError("another format")
        return _read(form, _filled(module, state))
    except _DAMAGED as damaged:
        raise WrongUse(f"{path} is no network.", allowed="what model.save wrote") from damaged


def _filled(
    module: nn.Module,
    state: Mapping[str, torch.Tensor],
) -> nn.Module:
    """Returns a copy of a module with this state, in evaluation mode."""
    filled = copy.deepcopy(module).eval()
    try:
        filled.load_state_dict(dict(state))
    except RuntimeError as other:
        raise WrongUse(
            "The file holds the weights of another module.",
            allowed="a module with the same layers as the one that was fitted",
        ) from other
    return filled


def _read(
    form: Mapping[str, Any],
    module: nn.Module,
) -> NetworkModel:
    """Builds the model from its JSON form; raises ValueError if its parts do not fit together."""
    given = form["reading"]
    inputs = tuple(map(_input, given["inputs"]))
    read = inputs, _input(given["label"])
    lower, upper = numbers(form["bounds"], 2).tolist()
    return NetworkModel(
        module,
        TextReading(*read, Bag(**given["bag"])) if "bag" in given else Reading(*read),
        read_columns(form["columns"], len(inputs)),
        texts(form["classes"]),
        (lower, upper),
        read_cost(form["cost"]),
        text(form["charge"]),
    )


def _input(stored: Mapping[str, Any]) -> Input:
    """Builds an input from its JSON form."""
    lower = whole(stored["lower"])
    upper = whole(stored["upper"], lower)
    return Input(whole(stored["place"], 0), lower, upper, bool(stored["is_class"]))
