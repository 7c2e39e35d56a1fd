# SPDX-License-Identifier: Apache-2.0
"""The device of a network, and settings under which it computes reproducibly. Proof:
gradients.proof.md.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from sfumato.errors import WrongUse

CPU = torch.device("cpu")
_KINDS = ("cpu", "cuda")
# torch cuts an elementwise operation into a piece for each thread, by numbers and not by rows. Of
# 64 rows or a multiple, each of two pieces is whole rows, and a multiple of the 32 numbers that a
# loop takes at once; of three pieces none is.
_MOST_THREADS, ROWS = 2, 64
_COMPUTING = threading.RLock()
# What torch wants of the environment before products on a GPU are the same each time.
_WORKSPACE, _WORKSPACES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")
# Settings under which products are computed of shorter numbers than asked.
_SHORTENING = ("NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULAT")


def device_of(module: nn.Module) -> torch.device:
    """Returns the single device of a module's parameters and buffers.

    Raises:
        WrongUse: another kind of device, or several; a GPU in an environment under which products
            may differ from time to time, or be of shorter numbers.
    """
    tensors = [*module.parameters(), *module.buffers()]
    devices = {value.device for value in tensors} or {CPU}
    kinds = {device.type for device in devices}
    if len(devices) > 1 or not kinds <= set(_KINDS):
        raise WrongUse(
            f"A module on {', '.join(sorted(map(str, devices)))}.",
            allowed="the CPU, or one GPU of CUDA",
            remedy="module.to(device) moves all of it.",
        )
    if kinds == {"cuda"}:
        _require_environment()
    return devices.pop()


def _require_environment() -> None:
    """Raises WrongUse for settings under which GPU products are not reproducible, or less
    precise.
    """
    if os.environ.get(_WORKSPACE) not in _WORKSPACES:
        raise WrongUse(
            f"A module on a GPU without {_WORKSPACE} in the environment.",
            allowed=" or ".join(_WORKSPACES),
            remedy=f"Set {_WORKSPACE}={_WORKSPACES[0]} before Python starts: sums of floats are "
            "then the same each time, which the guarantee needs.",
        )
    for name in sorted(os.environ):
        if name.startswith(_SHORTENING):
            raise WrongUse(
                f"A module on a GPU with {name} in the environment.",
                remedy="Remove it: products would be computed of shorter numbers.",
            )


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Context manager in which torch computes equal rows to equal bits, at any position of a batch.

    Batches must have ``ROWS`` rows or a multiple.

    On a CPU each operation uses at most two threads. Their number is a setting of the process, so
    only one thread at a time is inside. A GPU operation without a deterministic version raises
    torch's ``RuntimeError``.

    Raises:
        WrongUse: the number of threads was changed meanwhile.
    """
    if device.type == "cpu":
        with _COMPUTING:
            yield from _on_few_threads()
        return
    before = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    searched = torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(mode=True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)
        torch.backends.cudnn.benchmark = searched


def _on_few_threads() -> Iterator[None]:
    """Sets the number of torch's threads, and restores it at the end."""
    before = torch.get_num_threads()
    threads = min(before, _MOST_THREADS)
    if threads != before:
        torch.set_num_threads(threads)
    try:
        yield
        if torch.get_num_threads() != threads:
            raise WrongUse(
                "The number of torch's threads was changed while a network was computed.",
                allowed="torch.set_num_threads before or after a fit, a score or a step",
                remedy="Take it out of the module and its hooks.",
            )
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
