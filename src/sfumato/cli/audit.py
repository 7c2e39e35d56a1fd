# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit``: does every mechanism keep its promise? By exact laws, and by runs."""

import math
from collections.abc import Callable, Iterator, Sequence

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from sfumato.audit.attack import Audit
from sfumato.audit.catalogue import Checked, Promised, catalogue
from sfumato.audit.verdict import Verdict, number, shown, table
from sfumato.audit.verify import Measure, Verification
from sfumato.cli.audit_function import audit_function, claim_of
from sfumato.cli.options import as_json
from sfumato.errors import Failed
from sfumato.exact.bracket import Bracket
from sfumato.privacy.event import Json

_RUNS = 10_000
_MOST = 10**8
_HEADING = (
    "mechanism",
    "claim",
    "exact",
    "runs: epsilon >=",
    "wrong at most",
    "notices",
    "promise",
)
_PROMISE = {Verdict.HOLDS: "holds", Verdict.VIOLATED: "BROKEN", Verdict.UNDECIDED: "not refuted"}


@click.command("audit")
@click.option(
    "--runs",
    type=click.IntRange(0, _MOST),
    default=_RUNS,
    show_default=True,
    help="Runs of each mechanism on each of two neighbouring inputs; 0: exact laws only.",
)
@click.option(
    "--mechanism", "names", multiple=True, metavar="NAME", help="Only this one; may be repeated."
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option(
    "--function",
    "place",
    metavar="FILE:NAME",
    help="A mechanism of your own instead: a Python function.",
)
@click.option(
    "--input",
    "inputs",
    nargs=2,
    default=("0", "1"),
    show_default=True,
    help="Its two inputs, as JSON.",
)
@click.option("--epsilon", help="What --function claims.")
@click.option("--delta", help="What --function claims besides.")
def command(
    *,
    runs: int,
    names: tuple[str, ...],
    form: str,
    place: str | None,
    inputs: tuple[str, str],
    epsilon: str | None,
    delta: str | None,
) -> None:
    """Try to break the promise of every mechanism, or of one of your own. Exit 3 if one is broken."""
    if place is not None:
        if names:
            raise click.UsageError("--mechanism and --function: name one of them.")
        with _progress() as bar:
            task = bar.add_task(place, total=1)
            ran = audit_function(
                place, inputs, claim_of(epsilon, delta), runs, _within(bar, task, 0)
            )
        _show_function(ran, form)
        return
    if epsilon is not None or delta is not None:
        raise click.UsageError("--epsilon and --delta state the claim of --function.")
    checked = _checked(_chosen(names), runs)
    click.echo(as_json([_json(each) for each in checked]) if form == "json" else _table(checked))
    broken = [each.promised.name for each in checked if each.verdict is Verdict.VIOLATED]
    if broken:
        raise Failed(
            f"Broken promises: {', '.join(broken)}.",
            remedy="Answer nothing with these mechanisms, and report it: it is a fault of sfumato.",
        )


def _show_function(ran: Audit, form: str) -> None:
    """The result of a user's own mechanism."""
    click.echo(as_json(_runs_json(ran)) if form == "json" else str(ran))
    if ran.verdict is Verdict.VIOLATED:
        raise Failed(
            f"The claim of {ran.mechanism} is broken.",
            remedy="Do not release anything with this function.",
        )


def _chosen(names: Sequence[str]) -> list[Promised]:
    """Those that are named, or all; in the order of the catalogue."""
    known = {each.name: each for each in catalogue()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.BadParameter(
            f"no mechanism {unknown[0]!r}; there are {', '.join(known)}", param_hint="--mechanism"
        )
    return [each for name, each in known.items() if not names or name in names]


def _checked(chosen: Sequence[Promised], runs: int) -> list[Checked]:
    """The checks, with a bar on a terminal: all of them take a minute or two."""
    with _progress() as bar:
        task = bar.add_task("mechanisms", total=len(chosen))
        found: list[Checked] = []
        for each in chosen:
            bar.update(task, description=each.name, completed=len(found))
            found.append(each.check(runs, _within(bar, task, len(found))))
    return found


def _progress() -> Progress:
    """A bar on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _within(bar: Progress, task: TaskID, before: int) -> Callable[[int, int], None]:
    """Moves the bar while one mechanism runs."""
    return lambda done, total: bar.update(task, completed=before + done / total)


def _table(checked: Sequence[Checked]) -> str:
    rows = [
        (each.promised.name, _claim(each), _exact(each), *_found(each), _PROMISE[each.verdict])
        for each in checked
    ]
    return f"{table([_HEADING, *rows])}\n\n" + "\n".join(_legend(checked))


def _legend(checked: Sequence[Checked]) -> Iterator[str]:
    yield "exact: bounds of the true epsilon (or rho), by the output laws on the worst neighbours known."
    if any(each.runs for each in checked):
        yield "runs: a lower bound that is wrong with the probability shown. notices: what would have been found"
        yield "violated, an epsilon or a delta at the claimed epsilon; runs never prove that a promise holds."
    held = sum(each.verdict is Verdict.HOLDS for each in checked)
    yield f"{held} of {len(checked)} are proved to hold, on the neighbours compared."


def _claim(checked: Checked) -> str:
    claim = checked.claim
    cost = (
        f"rho {number(claim.rho)}" if claim.epsilon is None else f"epsilon {number(claim.epsilon)}"
    )
    return f"{cost}, delta {number(claim.delta)}" if claim.delta else cost


def _exact(checked: Checked) -> str:
    law = checked.law
    if law is None:
        return "-"
    if checked.claim.epsilon is not None:
        return f"epsilon {shown(law.epsilon)}"
    return f"rho {shown(_rho(checked))}"


def _found(checked: Checked) -> tuple[str, str, str]:
    ran = checked.runs
    if ran is None:
        return ("-", "-", "-")
    at = f"{ran.epsilon:.4g} (delta {number(ran.delta)})" if ran.delta else f"{ran.epsilon:.4g}"
    notices = [f"epsilon {ran.notices:.3g}"] if math.isfinite(ran.notices) else []
    notices += [f"delta {ran.notices_delta:.2g}"] if ran.notices_delta < 1 else []
    return at, f"{float(1 - ran.confidence):.1g}", " or ".join(notices) or "nothing"


def _rho(checked: Checked) -> Bracket:
    """Bounds of the true rho, over the pairs compared."""
    assert checked.law is not None
    truths = [each.truth for each in checked.law.findings if each.measure is Measure.RHO]
    return Bracket(max(each.lower for each in truths), max(each.upper for each in truths))


def _json(checked: Checked) -> Json:
    """Numbers as they are; exact ones as texts, to six digits where they are long; beyond all floats: null."""
    claim = checked.claim
    cost = (
        {"rho": number(claim.rho)} if claim.epsilon is None else {"epsilon": number(claim.epsilon)}
    )
    return {
        "mechanism": checked.promised.name,
        "claim": {**cost, "delta": number(claim.delta)},
        "exact": _law_json(checked.law),
        "runs": _runs_json(checked.runs),
        "verdict": checked.verdict.value,
    }


def _law_json(law: Verification | None) -> Json:
    if law is None:
        return None
    return {
        "epsilon": [_finite(law.epsilon.lower), _finite(law.epsilon.upper)],
        "delta": number(law.claim.delta + law.tolerance),
        "findings": [
            {
                "measure": each.measure.value,
                "truth": [_finite(each.truth.lower), _finite(each.truth.upper)],
            }
            for each in law.findings
        ],
        "verdict": law.verdict.value,
    }


def _runs_json(ran: Audit | None) -> Json:
    if ran is None:
        return None
    return {
        "epsilon": ran.epsilon,
        "delta": number(ran.delta),
        "confidence": str(ran.confidence),
        "notices": {"epsilon": _finite(ran.notices), "delta": ran.notices_delta},
        "trials": [
            {"set": each.region, "hits": each.hits, "misses": each.misses, "runs": each.runs}
            for each in ran.trials
        ],
        "verdict": ran.verdict.value,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
