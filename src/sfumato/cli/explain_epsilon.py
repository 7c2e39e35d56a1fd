# SPDX-License-Identifier: Apache-2.0
"""``sfumato explain-epsilon``: explains a guarantee by bounds on what attackers can do."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

import click
from rich import box
from rich.console import Console
from rich.table import Table

from sfumato.accounting.group import for_group
from sfumato.accounting.interpret import Attacker, unprotected
from sfumato.accounting.published_parameters import SETTINGS
from sfumato.accounting.zcdp import approx_from_zcdp
from sfumato.cli.explain_scale import scale_json, scale_text
from sfumato.cli.options import as_json, require_spared, write_file
from sfumato.cli.trade_off import trade_off_chart
from sfumato.errors import InvalidNumber
from sfumato.exact.rational import Number, decimal_text, positive, to_fraction
from sfumato.privacy.event import Json
from sfumato.privacy.guarantee import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from sfumato.privacy.relaxations import MetricDP
from sfumato.privacy.unit import Relation

# The failure probability of a bound on beliefs, as a multiple of delta.
_TIMES_DELTA = 10
_USUAL = Fraction(1, 100)
_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING)


Explained: TypeAlias = PureDP | ApproxDP | ZeroConcentratedDP


@dataclass(frozen=True, slots=True)
class Asked:
    """The guarantee to explain at ``delta``, with the prior, group size and neighbour relation."""

    promise: Explained
    delta: Fraction
    prior: Fraction
    size: int
    relation: Relation

    @property
    def failure(self) -> Fraction:
        """The probability that the bound on a belief fails."""
        if isinstance(self.promise, ZeroConcentratedDP):
            return self.delta
        return min(_TIMES_DELTA * self.delta, Fraction(1))


@click.command("explain-epsilon")
@click.argument("epsilon", required=False)
@click.option(
    "--delta", help="The delta of the promise; with --rho, the delta that it is read at (1e-6)."
)
@click.option("--rho", help="Explain rho-zCDP, instead of an epsilon.")
@click.option("--per", help="Explain privacy at a scale: EPSILON per so far, such as 200m.")
@click.option(
    "--prior",
    default="0.5",
    show_default=True,
    help="What the attacker believed before, from 0 to 1.",
)
@click.option(
    "--group",
    "size",
    type=int,
    default=2,
    show_default=True,
    help="How many units stand or fall together.",
)
@click.option(
    "--relation",
    type=click.Choice([relation.value for relation in Relation]),
    default=Relation.ADD_REMOVE.value,
    show_default=True,
    help="When two datasets are neighbours.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option(
    "--save-plot", type=click.Path(dir_okay=False), help="Write the trade-off curve as SVG."
)
def command(
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    per: str | None,
    form: str,
    save_plot: str | None,
    **about: str | int,
) -> None:
    """Explain what EPSILON means: what the best attacker can do, and what is not protected.

    Every number is a bound for attackers of any knowledge, rounded in their favour.
    """
    require_spared(save_plot)
    if per is not None:
        _explain_scale(epsilon, per, form, alone=not (delta or rho or save_plot))
        return
    promise, slack = _promise(epsilon, delta, rho)
    prior, size = to_fraction("prior", about["prior"]), int(about["size"])
    asked = Asked(promise, slack, prior, size, Relation(about["relation"]))
    attacker = Attacker(promise)
    if form == "json":
        click.echo(as_json(_json(asked, attacker)))
    else:
        _show(asked, attacker)
    if save_plot:
        together = for_group(promise, asked.size)
        named = [(_short(promise), attacker)]
        if asked.size > 1:
            named.append((f"{asked.size} together", Attacker(together)))
        write_file(save_plot, trade_off_chart(named).svg.encode())


def _explain_scale(
    epsilon: str | None,
    per: str,
    form: str,
    *,
    alone: bool,
) -> None:
    """Prints what an epsilon per length means."""
    if epsilon is None or not alone:
        raise InvalidNumber(
            "--per with something else than EPSILON.", allowed="explain-epsilon 1 --per 200m"
        )
    promise = MetricDP(epsilon, per)
    click.echo(as_json(scale_json(promise)) if form == "json" else scale_text(promise))


def _promise(epsilon: str | None, delta: str | None, rho: str | None) -> tuple[Explained, Fraction]:
    """Returns the guarantee that the options state, and its delta."""
    if (epsilon is None) == (rho is None):
        raise InvalidNumber(
            "Exactly one of EPSILON and --rho is explained.",
            allowed="explain-epsilon 1, or --rho 0.5",
        )
    if rho is not None:
        slack = positive("delta", "1e-6" if delta is None else delta, at_most=Fraction(1, 2))
        return ZeroConcentratedDP(rho), slack
    assert epsilon is not None
    slack = to_fraction("delta", delta or 0)
    if slack:
        return ApproxDP(epsilon, slack), slack
    return PureDP(epsilon), slack


def _rows(asked: Asked, attacker: Attacker) -> Iterator[tuple[str, str]]:
    """Yields the rows of the table: an attack, and the bound on its success."""
    prior, failure = asked.prior, asked.failure
    after = attacker.posterior(prior, failure)
    before, guess = _most(prior), _most(max(prior, 1 - prior))
    yield (
        f"a belief of {before} that you are in it",
        f"stays from {_least(after.lowest)} to {_most(after.highest)}",
    )
    if failure:
        yield "", f"except with probability {_up(failure)}: then up to certainty"
    yield (
        "a guess, in or out, at even odds",
        f"is right at most {_most(attacker.accuracy('0.5'))} of the time",
    )
    yield (
        f"a guess where {before} are in",
        f"is right at most {_most(attacker.accuracy(prior))} ({guess} unseen)",
    )
    yield "true alarms less false alarms", f"at most {_most(attacker.advantage)} (the advantage)"
    yield (
        "with 1% of false alarms",
        f"finds at most {_most(1 - Fraction(attacker.misses('0.01')))} of the members",
    )
    yield (
        f"naming half of them, where {before} are in",
        f"at most {_most(attacker.precision(prior, '0.5'))} are members",
    )
    yield (
        "harm: 1% on average without you",
        f"at most {_most(attacker.harm(_USUAL, largest=1))} with you",
    )
    yield f"{asked.size} units together", _group_guarantee(asked.promise, asked.size)
    if asked.relation is Relation.ADD_REMOVE:
        yield "your value, if it is known that you are in", _group_guarantee(asked.promise, 2)
    if isinstance(asked.promise, ZeroConcentratedDP):
        stated = approx_from_zcdp(asked.promise, asked.delta)
        yield f"as (epsilon, delta) at delta {_up(asked.delta)}", f"epsilon {_up(stated.epsilon)}"


def _group_guarantee(promise: Explained, size: int) -> str:
    """Returns the guarantee for a group of units."""
    together = for_group(promise, size)
    if isinstance(together, ApproxDP) and together.delta == 1:
        return "nothing is promised"
    return _short(together)


def _show(asked: Asked, attacker: Attacker) -> None:
    """Prints the explanation."""
    console, bounds = Console(highlight=False), list(_rows(asked, attacker))
    console.print(
        f"{_short(asked.promise)}, neighbours {asked.relation.value}\n", style="bold", markup=False
    )
    console.print(_table(("against any attacker", "bound"), bounds))
    if asked.delta and not isinstance(asked.promise, ZeroConcentratedDP):
        console.print(
            f"\nWith probability up to delta = {_up(asked.delta)} all about a unit may be told.",
            markup=False,
        )
    console.print("\nWhat it does not protect", style="bold")
    for line in unprotected(asked.relation):
        console.print(f"- {line}", markup=False)
    console.print(
        "\nWhat others chose: units differ, so it is no ranking, "
        "and no number is right by itself\n",
        style="bold",
    )
    others = []
    for setting in SETTINGS:
        name, promise = f"{setting.name} ({setting.year})", _short(setting.guarantee)
        accuracy = _most(Attacker(setting.guarantee).accuracy("0.5"))
        others.append((name, promise, setting.unit, accuracy))
    console.print(_table(("who", "promise", "to", "right at most"), others))
    console.print("\nSources, and who adds the noise: --format json.")


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    """Returns a table for the terminal."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in titles:
        table.add_column(title)
    for row in rows:
        table.add_row(*row)
    return table


def _json(asked: Asked, attacker: Attacker) -> Json:
    """Returns the explanation as JSON; exact numbers are strings."""
    prior, failure = asked.prior, asked.failure
    after = attacker.posterior(prior, failure)
    return {
        "promise": _short(asked.promise),
        "relation": asked.relation.value,
        "prior": decimal_text(prior),
        "posterior": {
            "lowest": after.lowest,
            "highest": after.highest,
            "failure": decimal_text(failure),
        },
        "advantage": attacker.advantage,
        "accuracy": {"even odds": attacker.accuracy("0.5"), "prior": attacker.accuracy(prior)},
        "misses at 1% false alarms": attacker.misses("0.01"),
        "precision at half of the members": attacker.precision(prior, "0.5"),
        "harm of 0.01, at most 1": attacker.harm(_USUAL, largest=1),
        "group": {"size": asked.size, "promise": _group_guarantee(asked.promise, asked.size)},
        "trade_off": [list(point) for point in attacker.trade_off(20)],
        "not protected": list(unprotected(asked.relation)),
        "settings": [
            {
                "name": setting.name,
                "promise": _short(setting.guarantee),
                "unit": setting.unit,
                "noise_by": setting.noise_by.value,
                "year": setting.year,
                "source": setting.source,
                "url": setting.url,
            }
            for setting in SETTINGS
        ],
    }


def _short(promise: Guarantee) -> str:
    """Returns a guarantee in a few words, rounded up."""
    match promise:
        case PureDP():
            return f"epsilon {_up(promise.epsilon)}"
        case ApproxDP():
            return f"epsilon {_up(promise.epsilon)}, delta {_up(promise.delta)}"
        case ZeroConcentratedDP():
            return f"rho {_up(promise.rho)} (zCDP)"
    raise AssertionError("the command asks for no other")


def _up(number: Fraction) -> str:
    """Returns a number with six digits, rounded up."""
    shown = _SIX_DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    # a whole number is written out: 30, not 3e+1
    form = "f" if shown == shown.to_integral_value() and shown.adjusted() < 16 else "g"
    return f"{shown.normalize():{form}}".lower()


def _most(share: Number) -> str:
    """Returns a share as a percentage, rounded up."""
    return f"{math.ceil(Fraction(share) * 10**6) / 10**4:.7g}%"


def _least(share: Number) -> str:
    """Returns a share as a percentage, rounded down."""
    return f"{math.floor(Fraction(share) * 10**6) / 10**4:.7g}%"
