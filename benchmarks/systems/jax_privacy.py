# SPDX-License-Identifier: Apache-2.0
"""Steps of jax-privacy's clipped gradients, and an ordinary one of the same MLP in JAX.

One thread of the processor, float32, compiled. The compiler's time is not counted.
"""

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
import numpy as np
import optax  # type: ignore[import-not-found]
from jax_privacy import clipped_grad  # type: ignore[import-not-found]
from jax_privacy.noise_addition import gaussian_privatizer  # type: ignore[import-not-found]

from benchmarks.systems import Call, Make
from benchmarks.systems.batches import MLP_WIDTHS, made_up

PACKAGES = ("jax-privacy", "jax")
_LARGEST = 255
# The layers of each network: their widths.
_NETWORKS = {"MLP": MLP_WIDTHS, "logistic": (MLP_WIDTHS[0], MLP_WIDTHS[-1])}
# Of how many rows gradients are written out at once; None: of all. The fastest here.
_AT_ONCE = {"MLP": 8, "logistic": None}
# A step: weights, the state of the noise, inputs and labels to new weights and state.
_Step = Callable[..., tuple[Any, Any]]


def _loss(weights: Any, x: Any, y: Any) -> Any:
    """The mean loss of rows; rectifiers between the layers."""
    for place, (matrix, shift) in enumerate(weights):
        x = x @ matrix + shift
        if place < len(weights) - 1:
            x = jax.nn.relu(x)
    return optax.softmax_cross_entropy_with_integer_labels(x, y).mean()


def _ordinary(name: str, rows: int) -> tuple[_Step, Any]:
    """Plain gradient descent."""

    def step(weights: Any, state: Any, x: Any, y: Any) -> tuple[Any, Any]:
        gradient = jax.grad(_loss)(weights, x, y)
        return _moved(weights, gradient), state

    return step, None


def _clipped(name: str, rows: int) -> tuple[_Step, Any]:
    """Gradients of each row clipped to 1 and added up, with noise of 1."""
    gradients = clipped_grad(
        _loss,
        l2_clip_norm=1.0,
        batch_argnums=(1, 2),
        normalize_by=rows,
        microbatch_size=_AT_ONCE[name],
    )
    noise = gaussian_privatizer(stddev=1.0 / rows, prng_key=0)

    def step(weights: Any, state: Any, x: Any, y: Any) -> tuple[Any, Any]:
        noisy, state = noise.update(gradients(weights, x, y), state)
        return _moved(weights, noisy), state

    return step, noise


def _moved(weights: Any, gradient: Any) -> Any:
    return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, weights, gradient)


def _work(name: str, kind: Callable[[str, int], tuple[_Step, Any]]) -> Make:
    """A step of a network, compiled; what it returns is waited for."""

    def make(scale: float, rows: int) -> Call:
        widths, random = _NETWORKS[name], np.random.default_rng(0)
        weights = []
        for wide, narrow in pairwise(widths):
            matrix = random.normal(0, wide**-0.5, (wide, narrow)).astype(np.float32)
            weights.append((jnp.asarray(matrix), jnp.zeros(narrow, jnp.float32)))
        codes = made_up(rows, widths[0], _LARGEST)
        x, y = jnp.asarray(codes[:, :-1], jnp.float32) / _LARGEST, jnp.asarray(codes[:, -1])
        step, noise = kind(name, rows)
        compiled, state = jax.jit(step), noise and noise.init(weights)
        now = [(weights, state)]

        def call() -> None:
            now[0] = jax.block_until_ready(compiled(*now[0], x, y))

        return call

    return make


WORKS: dict[str, Make] = {
    **{f"{name}, ordinary": _work(name, _ordinary) for name in _NETWORKS},
    **{f"{name}, vmap": _work(name, _clipped) for name in _NETWORKS},
}
