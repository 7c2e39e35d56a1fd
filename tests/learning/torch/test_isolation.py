# SPDX-License-Identifier: Apache-2.0
"""Networks that mix rows are refused by the name of the layer; those that do not are taken."""

from typing import Any

import pytest
import torch
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.torch import isolation
from sfumato.learning.torch.isolation import require_isolated, require_isolated_elsewhere
from tests.learning.torch.nets import (
    CLASSES,
    RULED,
    UNRULED,
    WIDTH,
    Centred,
    Recurrent,
    linear,
    sums,
)


class Shuffled(nn.Module):
    """A part of the gradient of a row comes from the row before it."""

    def forward(self, x: Any) -> Any:
        return x + 1e-6 * x.detach().roll(1, 0)


class Counting(nn.Module):
    """Keeps the sum of what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Any) -> Any:
        self.seen += x.detach().sum()
        return self.out(x)


class Trimmed(nn.Module):
    """Cuts texts to the longest one of the batch, and takes means over what is left."""

    def __init__(self, *, left: bool = False, padding: int = 0) -> None:
        super().__init__()
        self.left, self.padding = left, padding
        self.words, self.out = nn.Embedding(10, 4), nn.Linear(4, CLASSES)

    def forward(self, x: Any) -> Any:
        texts = (x.flip(1) if self.left else x).mul(9).long()
        used = (texts != self.padding).any(0)
        length = max(int(used.nonzero().max()) + 1, 1) if used.any() else 1
        return self.out(torch.tanh(self.words(texts[:, :length])).mean(1))


class Hidden(nn.Module):
    """Mixes rows between two layers whose weights begin as 0."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(WIDTH, 5), nn.Linear(5, CLASSES)
        nn.init.zeros_(self.inner.weight)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Any) -> Any:
        inner = self.inner(x)
        return self.out(inner - inner.mean(0))


def dropping() -> nn.Module:
    return Recurrent(nn.GRU(3, 5, 2, batch_first=True, dropout=0.5))


def mean_loss(outputs: Any, labels: Any) -> Any:
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    return losses * losses.detach().mean()


@pytest.mark.parametrize("make", [*RULED.values(), *UNRULED.values()])
def test_a_network_that_treats_each_row_by_itself_is_taken(make: Any) -> None:
    require_isolated(sums(make(), whole=make in UNRULED.values()))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: nn.Sequential(linear(), nn.BatchNorm1d(CLASSES)), r"1 \(BatchNorm1d\)"),
        (Centred, r"the module \(Centred\)"),
        (lambda: nn.Sequential(Shuffled(), linear()), r"0 \(Shuffled\)"),
        (Counting, "the buffer seen"),
        (lambda: nn.Sequential(nn.Dropout(0.5), linear()), r"0 \(Dropout\) returns another"),
        (dropping, r"layer \(GRU\) returns another"),
    ],
)
def test_a_network_that_mixes_rows_is_refused(make: Any, name: str, whole: bool) -> None:
    with pytest.raises(WrongUse, match=name):
        require_isolated(sums(make(), whole=whole))


@pytest.mark.parametrize("settings", [{}, {"left": True}, {"padding": 9}])
def test_a_network_that_cuts_rows_to_the_longest_is_refused(settings: Any) -> None:
    with pytest.raises(WrongUse, match=r"the module \(Trimmed\)"):
        require_isolated(sums(Trimmed(**settings)))


def test_what_mixes_rows_only_at_other_weights_is_refused() -> None:
    hidden = sums(Hidden())
    # at the weights of the start nothing tells
    require_isolated(hidden)
    with pytest.raises(WrongUse, match=r"the module \(Hidden\)"):
        require_isolated_elsewhere(hidden)
    taken = sums(linear())
    require_isolated_elsewhere(taken)
    assert (taken.network.weights == taken.network.start).all()


def test_the_remedy_of_batch_norm_is_group_norm() -> None:
    with pytest.raises(WrongUse, match=r"nn\.GroupNorm"):
        require_isolated(sums(nn.Sequential(nn.BatchNorm1d(WIDTH), linear())))


def test_a_loss_over_the_batch_is_refused() -> None:
    with pytest.raises(WrongUse, match="A loss of shape"):
        require_isolated(sums(linear(), loss=nn.CrossEntropyLoss()))
    with pytest.raises(WrongUse, match="the loss or a gradient"):
        require_isolated(sums(linear(), loss=mean_loss))


def test_half_precision_and_nothing_to_train_are_refused() -> None:
    for module in (linear().half(), linear().bfloat16(), linear().requires_grad_(False), nn.ReLU()):
        with pytest.raises(WrongUse, match="in half precision"):
            require_isolated(sums(module))


def test_without_the_check_of_layers_the_gradients_still_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "_require_layers", lambda *_: None)
    with pytest.raises(WrongUse, match="the loss or a gradient"):
        require_isolated(
            sums(
                nn.Sequential(
                    nn.BatchNorm1d(WIDTH, affine=False, track_running_stats=False), linear()
                )
            )
        )
