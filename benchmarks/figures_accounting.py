# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/accounting.md: ``python -m benchmarks.figures_accounting``.

``trade-off.svg`` shows what the best attacker can reach, ``composition.svg`` what k equal
queries cost by each way of adding up: basic, advanced, zCDP and the privacy loss distribution.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from benchmarks.figures import FOLDER, Axis, Panel, Point, _document, _text
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.interpret import Attacker
from sfumato.accounting.zcdp import approx_from_zcdp
from sfumato.cli.trade_off import trade_off_chart
from sfumato.privacy import (
    ApproxDP,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Norm,
    PureDP,
    Repeated,
    ZeroConcentratedDP,
)

COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
DELTA = Fraction(1, 10**6)
LAPLACE = ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(20), Distance(Norm.L1, Fraction(1)))
GAUSSIAN = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(100), Distance(Norm.L2, Fraction(1)))
_COLOURS = {"basic": "#8a8a8a", "advanced": "#c8794a", "zCDP": "#5b9a68", "PLD": "#3b6ea5"}
_NAMES = {
    "basic": "basic: k epsilon",
    "advanced": "advanced (2010)",
    "zCDP": "zCDP",
    "PLD": "privacy curve (PLD)",
}
Way = Callable[[int], float]


def trade_off() -> str:
    """Four promises, the weakest shaded."""
    promises = (
        ("epsilon 0.1", PureDP("0.1")),
        ("epsilon 1", PureDP(1)),
        ("rho 0.5 (zCDP)", ZeroConcentratedDP("0.5")),
        ("epsilon 3, delta 1e-6", ApproxDP(3, DELTA)),
    )
    return trade_off_chart([(name, Attacker(promise)) for name, promise in promises]).svg


def laplace_ways() -> Mapping[str, Way]:
    """Epsilon at delta of k Laplace queries of epsilon 0.05."""
    each = Fraction(1, 20)
    return {
        "basic": lambda count: float(count * each),
        "advanced": lambda count: advanced(float(each), count),
        "zCDP": lambda count: float(
            approx_from_zcdp(ZeroConcentratedDP(count * each**2 / 2), DELTA).epsilon
        ),
        "PLD": lambda count: privacy_curve(Repeated(LAPLACE, count)).epsilon(DELTA).upper,
    }


def gaussian_ways() -> Mapping[str, Way]:
    """Epsilon at delta of k Gaussian queries of sigma 100: basic and advanced split delta evenly over the queries."""

    def one(count: int, share: Fraction) -> float:
        return privacy_curve(GAUSSIAN).epsilon(share / count).upper

    return {
        "basic": lambda count: count * one(count, DELTA),
        "advanced": lambda count: (
            advanced(one(count, DELTA / 2), count, DELTA / 2) if count > 1 else one(1, DELTA)
        ),
        "zCDP": lambda count: float(
            approx_from_zcdp(ZeroConcentratedDP(Fraction(count, 20_000)), DELTA).epsilon
        ),
        "PLD": lambda count: privacy_curve(Repeated(GAUSSIAN, count)).epsilon(DELTA).upper,
    }


def advanced(epsilon: float, count: int, delta: Fraction = DELTA) -> float:
    """Dwork, Rothblum, Vadhan (2010), Theorem III.3; one query needs no composition."""
    if count == 1:
        return epsilon
    return math.sqrt(2 * count * -math.log(delta)) * epsilon + count * epsilon * math.expm1(epsilon)


def composition() -> str:
    """Both panels, epsilon over the number of queries."""
    parts = []
    for name, ways, left in (
        ("k Laplace queries, epsilon 0.05 each", laplace_ways(), 62),
        ("k Gaussian queries, sigma 100", gaussian_ways(), 434),
    ):
        curves = {
            way: [(float(count), cost(count)) for count in COUNTS] for way, cost in ways.items()
        }
        parts.append(_panel(name, curves, left))
    return _document(
        "Epsilon of k queries at delta 1e-6, by four ways of adding up", "".join(parts)
    )


def _panel(name: str, curves: Mapping[str, list[Point]], left: int) -> str:
    panel = Panel(
        name,
        Axis(1, 1000, left, left + 310),
        Axis(0.02, 100, 278, 48),
        [(1, "1"), (10, "10"), (100, "100"), (1000, "1,000")],
        [(0.1, "0.1"), (1, "1"), (10, "10"), (100, "100")],
    )
    parts = [panel.frame("queries; delta = 1e-6")]
    for place, (way, points) in enumerate(curves.items()):
        parts.append(panel.line(points, _COLOURS[way]))
        parts.append(_text(left + 12, 62 + 17 * place, _NAMES[way], "n", colour=_COLOURS[way]))
    return "".join(parts)


def main() -> None:
    """Writes both."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "trade-off.svg").write_text(trade_off(), encoding="utf-8")
    (FOLDER / "composition.svg").write_text(composition(), encoding="utf-8")


if __name__ == "__main__":
    main()
