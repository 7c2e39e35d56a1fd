# SPDX-License-Identifier: Apache-2.0
"""What a module or a loss shares with its caller may not move when they are tried."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.torch import made_up
from sfumato.learning.torch.made_up import trying
from tests.learning.torch.nets import CLASSES, LOSS, READING, WIDTH, Keeping, linear

SEEN: dict[str, Any] = {}


class Global(nn.Module):
    """Writes into a global."""

    def forward(self, x: Any) -> Any:
        SEEN["last"] = x.detach()
        return x[:, :CLASSES]


class OfClass(nn.Module):
    """Counts its calls in its class."""

    calls: ClassVar[int] = 0

    def forward(self, x: Any) -> Any:
        type(self).calls += 1
        return x[:, :CLASSES]


class Slotted:
    """Has no dictionary."""

    __slots__ = ("last",)

    def keep(self, x: Any) -> None:
        self.last = x


STORE = Slotted()


def hooked() -> nn.Module:
    module, features = linear(), []
    module[0].register_forward_hook(lambda *given: features.append(given[2].detach()))
    return module


def bound() -> nn.Module:
    """A function that an attribute holds writes into the caller's own module."""
    module: Any = Keeping()
    module.note = lambda x: setattr(module, "last", x)
    module.register_forward_hook(lambda layer, given, output: layer.note(given[0]))
    return module


class Itself(nn.Module):
    """Is its own copy."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.calls = nn.Linear(WIDTH, CLASSES), 0

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return self.out(x)


def in_default(outputs: Any, labels: Any, seen: Any = []) -> Any:  # noqa: B006 - the point
    seen.append(labels)
    return LOSS(outputs, labels)


def in_attribute(outputs: Any, labels: Any) -> Any:
    in_attribute.last = labels  # type: ignore[attr-defined]
    return LOSS(outputs, labels)


def in_slot(outputs: Any, labels: Any) -> Any:
    STORE.keep(labels)
    return LOSS(outputs, labels)


def in_closure() -> Callable[[Any, Any], Any]:
    calls = 0

    def loss(outputs: Any, labels: Any) -> Any:
        nonlocal calls
        calls += 1
        return LOSS(outputs, labels)

    return loss


def run(module: Any, loss: Any) -> None:
    """As a check does: copies, on made-up rows."""
    with trying(module, loss, "one that does not fail"):
        module, loss = copy.deepcopy(module), copy.deepcopy(loss)
        loss(module(READING.drawn(16, seed=1)[0]), READING.drawn(16, seed=1)[1])


CASES = [
    (Global, LOSS, r"module\.Global\.forward\.SEEN"),
    (OfClass, LOSS, r"module\.OfClass\.calls"),
    (hooked, LOSS, r"module\.0\._forward_hooks\.features"),
    (bound, LOSS, r"module\.last"),
    (Itself, LOSS, r"module\.calls"),
    (linear, in_default, "loss"),
    (linear, in_attribute, r"loss\.last"),
    (linear, in_slot, r"loss\.STORE"),
    (linear, in_closure(), r"loss\.calls"),
]


@pytest.mark.parametrize(("make", "loss", "name"), CASES)
def test_what_rows_move_outside_of_the_copies_is_refused_by_its_name(
    make: Any, loss: Any, name: str
) -> None:
    with pytest.raises(WrongUse, match=f"Rows move {name}, which is shared"):
        run(make(), loss)


def test_a_check_that_compares_nothing_takes_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_up, "parts_by_name", lambda **_: {})
    for make, loss, _ in CASES:
        run(make(), loss)


def test_what_stays_in_the_copies_is_taken() -> None:
    for make in (linear, Keeping):
        run(make(), LOSS)


def test_what_fails_on_made_up_rows_is_refused_in_words() -> None:
    with pytest.raises(WrongUse, match="Allowed: one that does not fail\nWhat to do: It says: Ind"):
        run(nn.Sequential(nn.Flatten(5)), LOSS)
    # an error of this package says enough
    with (
        pytest.raises(WrongUse, match="mine"),
        trying(linear(), LOSS, "anything"),
    ):
        raise WrongUse("mine", remedy="nothing")
    with pytest.raises(WrongUse, match="It says: ValueError: Attempted"):
        run(nn.LazyLinear(2), LOSS)
