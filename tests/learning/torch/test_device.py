# SPDX-License-Identifier: Apache-2.0
"""The device of a network: what is refused, and on a GPU the same sums as on the CPU."""

import copy
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning import torch as lt
from sfumato.learning.torch import blocks
from sfumato.learning.torch.blocks import Products
from sfumato.learning.torch.choice import needs_whole
from sfumato.learning.torch.device import CPU, _require_environment, device_of, repeatable
from sfumato.learning.torch.fingerprint import fingerprint
from sfumato.learning.torch.isolation import require_isolated, require_isolated_elsewhere
from sfumato.learning.torch.recorded import Recorded
from sfumato.privacy import Norm
from tests.contracts.require import missing
from tests.learning.rows import SELECT, connected, frame
from tests.learning.torch.nets import (
    LOSS,
    READING,
    RULED,
    UNRULED,
    Centred,
    codes,
    linear,
    opened,
    sums,
)
from tests.learning.torch.test_network import BUDGET, COST, Net, accuracy

EACH = [(name, make, name in UNRULED) for name, make in (RULED | UNRULED).items()]


def gpu() -> torch.device:
    if not torch.cuda.is_available():
        missing("cuda", "no GPU of CUDA here")
    return torch.device("cuda")


def released(statistic: Any, rows: Any) -> Any:
    return statistic.exact(opened(statistic, rows))


def test_a_module_is_on_one_device_of_a_known_kind() -> None:
    assert device_of(linear()) == CPU == device_of(nn.Flatten())
    with pytest.raises(WrongUse, match="A module on meta"):
        device_of(nn.Linear(2, 3, device="meta"))
    with pytest.raises(WrongUse, match="A module on cpu, meta"):
        device_of(nn.Sequential(nn.Linear(2, 3, device="meta"), nn.Linear(3, 2)))
    with pytest.raises(WrongUse, match="A module on meta"):
        Recorded(nn.Linear(2, 3, device="meta"), LOSS)


class There(nn.Linear):
    """Says that it is on a GPU."""

    def parameters(self, recurse: bool = True) -> Any:
        return iter([SimpleNamespace(device=torch.device("cuda", 0))])


def test_a_recipe_takes_a_module_that_is_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    assert lt.Network(There(2, 2), LOSS, lt.SGD(0.1), size=9).size == 9
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    with pytest.raises(WrongUse, match="before Python starts"):
        lt.Network(There(2, 2), LOSS, lt.SGD(0.1), size=9)


def test_an_environment_in_which_products_differ_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    _require_environment()
    for name in ("NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_DOUBLE_PRECISION"):
        with monkeypatch.context() as shorter:
            shorter.setenv(name, "1")
            with pytest.raises(WrongUse, match=name):
                _require_environment()
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    with pytest.raises(WrongUse, match="before Python starts"):
        _require_environment()


def test_settings_for_a_gpu_last_as_long_as_its_work() -> None:
    for device, inside in ((CPU, False), (torch.device("cuda"), True)):
        with pytest.raises(KeyError), repeatable(device):
            assert torch.are_deterministic_algorithms_enabled() is inside
            raise KeyError
        assert not torch.are_deterministic_algorithms_enabled()


def on_threads(threads: int) -> ExitStack:
    """Sets the number of torch's threads, and restores it at the end."""
    stack = ExitStack()
    stack.callback(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(threads)
    return stack


@pytest.mark.parametrize(("threads", "inside"), [(1, 1), (2, 2), (3, 2), (64, 2)])
def test_at_most_two_threads_share_an_operation(threads: int, inside: int) -> None:
    with on_threads(threads):
        with repeatable(CPU), repeatable(CPU):
            assert torch.get_num_threads() == inside
        with pytest.raises(KeyError), repeatable(CPU):
            raise KeyError
        assert torch.get_num_threads() == threads


def test_threads_that_are_changed_meanwhile_are_refused() -> None:
    with on_threads(4):
        with pytest.raises(WrongUse, match="was changed"), repeatable(CPU):
            torch.set_num_threads(3)
        assert torch.get_num_threads() == 4


def test_one_thread_of_the_process_computes_at_a_time() -> None:
    entered = threading.Event()

    def compute() -> None:
        with repeatable(CPU):
            entered.set()

    with repeatable(CPU):
        other = threading.Thread(target=compute)
        other.start()
        assert not entered.wait(0.05)
    other.join()
    assert entered.is_set()


@pytest.mark.parametrize(("name", "make", "whole"), EACH, ids=[each[0] for each in EACH])
def test_sums_of_a_gpu_are_those_of_the_cpu(name: str, make: Any, whole: bool) -> None:
    device = gpu()
    torch.manual_seed(1)
    here = make()
    there = sums(copy.deepcopy(here).to(device), whole=whole)
    if name == "table":
        # the kernel of its gradient adds up by place
        with pytest.raises(WrongUse, match="depends on its place"):
            require_isolated(there)
        return
    require_isolated(there)
    require_isolated_elsewhere(there)
    assert needs_whole(there.network, READING) is whole
    rows = codes(300)
    found = released(there, rows)
    # the same each time, and near those of the CPU, whose floats differ
    assert np.array_equal(found, released(there, rows))
    near = (4e-3 if name == "wide" else 3e-4) * 40
    step = float(there.lattice.step)
    assert np.abs(found - released(sums(here, whole=whole), rows)).max() * step < near
    # one unit more is within the distance, wherever it stands
    for place in (0, 150, 299):
        apart = found - released(there, np.delete(rows, place, axis=0))
        assert (apart.astype(object) ** 2).sum() <= there.distance(Norm.L2).value


def test_products_on_a_gpu_are_exact_whatever_torch_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = gpu()
    random = np.random.default_rng(5)
    into = torch.from_numpy(random.normal(size=(256, 1, 400))).float()
    out = torch.from_numpy(random.normal(size=(256, 1, 200))).float()
    # integers of 13 bits
    out[:8, :, 7] *= 100
    block = Products(into.to(device), out.to(device))
    integers = block.integers(2.0**29 / np.sqrt(block.amounts))
    inputs, outputs = (each[:, 0].cpu().numpy().astype(np.int64) for each in integers)
    wanted = (outputs.T @ inputs).flatten()

    def total() -> Any:
        return block.total(integers).double().cpu().numpy().astype(np.int64)

    assert block.total(integers).dtype is torch.float32
    assert np.array_equal(total(), wanted)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    assert np.array_equal(total(), wanted)
    assert block.total(integers).dtype is torch.float64
    # the broken version does not look
    monkeypatch.setattr(blocks, "_is_exact", lambda values: True)
    assert not np.array_equal(total(), wanted)


def test_rows_that_mix_on_a_gpu_are_refused() -> None:
    device = gpu()
    mixing = nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    for module, said in ((mixing, "BatchNorm1d"), (Centred(), "the module")):
        with pytest.raises(WrongUse, match=said):
            require_isolated(sums(module.to(device)))


def test_a_network_learns_on_a_gpu_and_predicts_on_the_cpu(tmp_path: Path) -> None:
    device, count = gpu(), 4_000
    asked: dict[str, Any] = {"size": count, "clip": "0.5"}
    torch.manual_seed(3)
    here, there = Net(), Net().to(device)
    assert fingerprint(here) != fingerprint(copy.deepcopy(here).to(device))
    moved = lt.Network(there, LOSS, lt.SGD(4.0, 0.8), steps=30, **asked)
    with connected(tmp_path, frame(count), BUDGET) as session:
        model = ln.fit(session, moved, SELECT, **COST)
        assert accuracy(model, frame(2000, seed=1)) > 0.7
        again = ln.fit(session, moved, SELECT, **COST)
        assert again.charge == model.charge and session.budget.spent == "2"
        asked["clip"] = lt.AdaptiveClip("0.5")
        adaptive = lt.Network(there, LOSS, lt.SGD(4.0, 0.8), steps=20, **asked)
        assert ln.fit(session, adaptive, SELECT, **COST).charge != model.charge
    assert {value.device for value in model.module.parameters()} == {CPU}
