# SPDX-License-Identifier: Apache-2.0
"""Rules are used only where they give the gradients of an ordinary backward pass."""

from typing import Any

import pytest
from torch import nn

from sfumato.learning.torch import layers
from sfumato.learning.torch.blocks import Vectors
from sfumato.learning.torch.choice import needs_whole
from sfumato.learning.torch.recorded import Recorded
from tests.learning.torch.nets import LOSS, READING, RULED, UNRULED, WIDTH, linear


class Elsewhere(nn.Module):
    """Uses the weight of a layer outside its call too."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.out(x) + nn.functional.linear(x, self.out.weight).square()


class Flattened(nn.Module):
    """Gives a layer the positions of all rows one below the other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(3, 2), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.inner(x.reshape(-1, 3)).reshape(len(x), -1))


class Told(nn.Module):
    """Attention whose settings are given by their places."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        x = x.reshape(len(x), 3, 4)
        return self.out(self.attention(x, x, x, None, False)[0].flatten(1))


@pytest.mark.parametrize("make", RULED.values(), ids=RULED.keys())
def test_networks_of_layers_with_rules_need_one_pass(make: Any) -> None:
    assert not needs_whole(Recorded(make(), LOSS), READING)


@pytest.mark.parametrize("make", [*UNRULED.values(), Elsewhere, Flattened, Told])
def test_other_networks_go_through_vmap(make: Any) -> None:
    assert needs_whole(Recorded(make(), LOSS), READING)


def test_a_wrong_rule_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(layer: Any, inputs: Any, outputs: Any) -> Any:
        for name, block in right(layer, inputs, outputs):
            yield name, block if name == "weight" else lambda: Vectors(outputs.double() * 1.01)

    right = layers._RULES[nn.Linear]
    monkeypatch.setitem(layers._RULES, nn.Linear, wrong)
    assert needs_whole(Recorded(linear(), LOSS), READING)
