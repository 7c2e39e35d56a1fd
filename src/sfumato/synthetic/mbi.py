# SPDX-License-Identifier: Apache-2.0
"""Converts measurements to and from the package mbi, and offers its estimator.

mbi is an optional extra (``sfumato[mbi]``): it brings jax, 380 MB on disk and 1 to 1.7 GB of memory
in a fit. Tests compare the built-in estimator with it, and it is a format of exchange.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.synthetic.estimate import Fitted, Measurement
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import JunctionTree, Part

_VERSION = "2.0."


def to_mbi(measurements: Sequence[Measurement]) -> list[Any]:
    """Converts measurements to ``mbi.LinearMeasurement``; columns are named "0", "1" and so on.

    Counts of one marginal with unequal noise are given in units of their noise.

    The measured pairs of a fitted model are ``model.released.pairs``.

    Raises:
        WrongUse: mbi 2.0 is not installed.
    """
    mbi = _package()
    converted = []
    for measurement in measurements:
        names = tuple(str(column) for column in measurement.columns)
        if np.ptp(measurement.sigma) == 0:
            sigma = float(measurement.sigma.flat[0])
            converted.append(mbi.LinearMeasurement(measurement.counts.ravel(), names, sigma))
            continue
        query = _InNoise(tuple(measurement.sigma.ravel().tolist()))
        scaled = (measurement.counts / measurement.sigma).ravel()
        converted.append(mbi.LinearMeasurement(scaled, names, 1.0, query))
    return converted


def from_mbi(measurements: Sequence[Any], sizes: Sequence[int]) -> list[Measurement]:
    """Converts measurements of whole marginals from mbi, whose columns are named "0", "1" and so
    on.

    ``sizes`` are the numbers of cells of these columns.

    Raises:
        WrongUse: a measurement of something else than the counts of a marginal.
    """
    plain = type(_package().LinearMeasurement(np.zeros(1), ("0",)).query)
    converted = []
    for measurement in measurements:
        columns = tuple(int(name) for name in measurement.clique)
        shape = tuple(sizes[column] for column in columns)
        sigma = np.full(shape, float(measurement.stddev))
        if isinstance(measurement.query, _InNoise):
            sigma *= np.array(measurement.query.sigma).reshape(shape)
        elif not isinstance(measurement.query, plain):
            raise WrongUse(
                f"A query {shown(measurement.query)} of mbi.", allowed="counts of a marginal"
            )
        counts = np.asarray(measurement.noisy_measurement, np.float64).reshape(shape)
        if isinstance(measurement.query, _InNoise):
            counts = counts * np.array(measurement.query.sigma).reshape(shape)
        converted.append(Measurement(columns, counts, sigma))
    return converted


@dataclass(frozen=True)
class Mbi:
    """The estimator of mbi (mirror descent) as an ``Estimator``, in 64 bits; constraints are
    refused.

    >>> Mbi(steps=100).steps
    100
    """

    steps: int = 1000

    def __call__(
        self,
        tree: JunctionTree,
        measurements: Sequence[Measurement],
        total: float,
        start: Sequence[Floats] = (),
        fixed: Sequence[Part] = (),
    ) -> Fitted:
        """Fits the distribution with mbi; ``start`` is not used.

        Raises:
            WrongUse: there are constraints, or mbi 2.0 is not installed.
        """
        if fixed:
            raise WrongUse("Constraints for the estimator of mbi.", remedy="MaximumEntropy")
        mbi = _package()
        sizes = {str(place): size for place, size in enumerate(tree.sizes)}
        domain = mbi.Domain.fromdict(sizes)
        model = mbi.estimation.MirrorDescent().estimate(
            domain, to_mbi(measurements), known_total=total, iters=self.steps
        )
        marginals = []
        for clique in tree.cliques:
            names = tuple(str(column) for column in clique)
            values = model.project(names).datavector(flatten=False)
            marginals.append(np.asarray(values, np.float64))
        return Fitted(tree, (), marginals, total)


@dataclass(frozen=True)
class _InNoise:
    """Divides the counts of a marginal by the standard deviations of their noise."""

    sigma: tuple[float, ...]

    def __call__(self, factor: Any) -> Any:
        """Returns the scaled values of a factor of mbi."""
        return factor.datavector() / np.array(self.sigma)


def _package() -> ModuleType:
    """Imports mbi with 64-bit numbers: in 32 bits its fits of many rows are far off."""
    version = ""
    if find_spec("mbi") is not None:
        version = metadata.version("mbi")
    if not version.startswith(_VERSION):
        raise WrongUse("mbi 2.0 is not installed.", remedy="pip install 'sfumato[mbi]'")
    with warnings.catch_warnings():
        # it advises about caches
        warnings.simplefilter("ignore")
        jax = import_module("jax")
        jax.config.update("jax_enable_x64", val=True)
        return import_module("mbi")
