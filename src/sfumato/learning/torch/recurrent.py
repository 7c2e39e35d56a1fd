# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and cells, computed position by position as affine maps (``unrolled``).

Their affine maps have rules, so no ``torch.func`` is needed. Packed sequences are refused: how many
rows are computed together in one depends on the lengths of all rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from sfumato.errors import WrongUse
from sfumato.learning.torch.unrolled import Tape

# The hidden state, and the cell of an LSTM; of others the hidden state twice.
State: TypeAlias = tuple[torch.Tensor, torch.Tensor]
# The next state, of what a position and the state before it were mapped to.
_Step: TypeAlias = Callable[[torch.Tensor, torch.Tensor, State], State]


def recurrent(
    layer: Any,
    tape: Tape,
    x: torch.Tensor,
    state: Any = None,
) -> tuple[torch.Tensor, Any]:
    """Returns the outputs and last states of an ``nn.LSTM``, ``nn.GRU`` or ``nn.RNN`` without
    dropout, computed as affine maps that ``tape`` records.

    Raises:
        WrongUse: a packed sequence.
    """
    _refuse_packed(x)
    starts = _starts(layer, x, state)
    if not starts:
        found: tuple[torch.Tensor, Any] = type(layer).forward(layer, x, state)
        return found
    if not layer.batch_first:
        x = x.transpose(0, 1)
    ways = ("", "_reverse")[: 1 + layer.bidirectional]
    lasts: list[State] = []
    for place in range(layer.num_layers):
        outputs = []
        for way in ways:
            start = starts[len(lasts)]
            output, last = _one_way(layer, tape, x, f"_l{place}{way}", start)
            outputs.append(output)
            lasts.append(last)
        x = torch.cat(outputs, 2)
    if not layer.batch_first:
        x = x.transpose(0, 1)
    hidden, cell = (torch.stack(each) for each in zip(*lasts, strict=True))
    return x, _state_of_layer(layer, hidden, cell)


def one_step(
    layer: Any,
    tape: Tape,
    x: torch.Tensor,
    state: Any = None,
) -> Any:
    """Returns the next state of an ``nn.LSTMCell``, ``nn.GRUCell`` or ``nn.RNNCell``, computed as
    affine maps that ``tape`` records.

    Raises:
        WrongUse: a packed sequence.
    """
    _refuse_packed(x)
    parts: Sequence[torch.Tensor] = ()
    if x.dim() == 2:
        parts = _parts(layer, x, (len(x),), state)
    if not parts:
        return type(layer).forward(layer, x, state)
    now = (parts[0], parts[1])
    given = tape.line(layer.weight_ih, layer.bias_ih, x)
    again = tape.line(layer.weight_hh, layer.bias_hh, now[0])
    return _state_of_layer(layer, *_step(layer)(given, again, now))


def _refuse_packed(x: object) -> None:
    if isinstance(x, PackedSequence):
        raise WrongUse(
            "A packed sequence: which rows are beside each other in it hangs on all of them.",
            allowed="a tensor (rows, positions, numbers), padded to a declared length",
            remedy="Take the outputs at the last position of each row with torch.gather.",
        )


def _starts(
    layer: Any,
    x: torch.Tensor,
    state: Any,
) -> Sequence[State]:
    """Returns the initial state of each layer and direction; empty if its shape is unexpected."""
    if x.dim() != 3:
        return ()
    rows = x.shape[1 - layer.batch_first]
    count = layer.num_layers * (1 + layer.bidirectional)
    parts = _parts(layer, x, (count, rows), state)
    return list(zip(*parts, strict=True))


def _parts(
    layer: Any,
    x: torch.Tensor,
    shape: tuple[int, ...],
    state: Any,
) -> Sequence[torch.Tensor]:
    """Returns the hidden and cell state, zeros by default; empty if they have other shapes."""
    width = getattr(layer, "proj_size", 0) or layer.hidden_size
    shapes = [(*shape, width), (*shape, layer.hidden_size)]
    if state is None:
        return [x.new_zeros(each) for each in shapes]
    given = (state, state)
    if isinstance(layer, nn.LSTM | nn.LSTMCell):
        given = tuple(state)
    if [each.shape for each in given] != shapes:
        return ()
    return given


def _state_of_layer(
    layer: Any,
    hidden: torch.Tensor,
    cell: torch.Tensor,
) -> Any:
    """Returns the state in the form of torch's layers."""
    if isinstance(layer, nn.LSTM | nn.LSTMCell):
        return hidden, cell
    return hidden


def _one_way(
    layer: Any,
    tape: Tape,
    x: torch.Tensor,
    name: str,
    now: State,
) -> tuple[torch.Tensor, State]:
    """Computes one layer in one direction: the outputs in order of positions, and the last
    state.
    """
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    into, back, bias, bias_back, shorter = (getattr(layer, f"{kind}{name}", None) for kind in kinds)
    step = _step(layer)
    from_inputs = tape.line(into, bias, x)
    positions = list(range(x.shape[1]))
    if name.endswith("reverse"):
        positions.reverse()
    outputs = {}
    for position in positions:
        again = tape.line(back, bias_back, now[0])
        now = step(from_inputs[:, position], again, now)
        if shorter is not None:
            now = (tape.line(shorter, None, now[0]), now[1])
        outputs[position] = now[0]
    return torch.stack([outputs[position] for position in sorted(outputs)], 1), now


def _step(layer: Any) -> _Step:
    """Returns the function that computes a layer at one position."""
    if isinstance(layer, nn.LSTM | nn.LSTMCell):
        return _lstm
    if isinstance(layer, nn.GRU | nn.GRUCell):
        return _gru
    return partial(_plain, {"tanh": torch.tanh, "relu": torch.relu}[layer.nonlinearity])


def _lstm(
    from_input: torch.Tensor,
    from_state: torch.Tensor,
    now: State,
) -> State:
    """The LSTM step of Hochreiter and Schmidhuber (1997), as in torch."""
    into, forget, fresh, out = _gates(from_input + from_state, 4)
    cell = torch.sigmoid(forget) * now[1] + torch.sigmoid(into) * torch.tanh(fresh)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def _gru(
    from_input: torch.Tensor,
    from_state: torch.Tensor,
    now: State,
) -> State:
    """The GRU step of Cho et al. (2014), as in torch."""
    reset, keep, fresh = _gates(from_input, 3)
    reset_too, keep_too, fresh_too = _gates(from_state, 3)
    kept = torch.sigmoid(keep + keep_too)
    made = torch.tanh(fresh + torch.sigmoid(reset + reset_too) * fresh_too)
    hidden = (1 - kept) * made + kept * now[0]
    return hidden, hidden


def _plain(
    bend: Callable[[torch.Tensor], torch.Tensor],
    from_input: torch.Tensor,
    from_state: torch.Tensor,
    _: State,
) -> State:
    """The plain recurrent step of Elman (1990), as in torch."""
    (total,) = _gates(from_input + from_state, 1)
    hidden = bend(total)
    return hidden, hidden


def _gates(
    values: torch.Tensor,
    count: int,
) -> Sequence[torch.Tensor]:
    """Splits each row into ``count`` equal contiguous parts.

    Contiguous, since torch computes the numbers at the end of a row differently, and a row would
    get other bits at another position.
    """
    parts = values.reshape(len(values), count, -1).transpose(0, 1).contiguous()
    return list(parts)
