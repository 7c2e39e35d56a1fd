# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit``: tests the guarantee of every mechanism, by exact distributions and by runs.

The work is done in the room ``audit``; this file chooses mechanisms and prints results. The
subcommands of ``_SECTIONS`` attack other things.
"""

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
from sfumato.cli.language import say
from sfumato.cli.lazy_group import LazyGroup
from sfumato.cli.options import as_json, table_or_json
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


_SECTIONS = {
    "Attack other things": {
        "system": ("sfumato.cli.audit_system", "Your declarations on this installation; free."),
        "release": ("sfumato.cli.audit_release", "What exact tables of counts give away."),
    },
}


@click.group("audit", cls=LazyGroup, sections=_SECTIONS, invoke_without_command=True)
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
@table_or_json
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
@click.pass_context
def command(
    context: click.Context,
    *,
    runs: int,
    names: tuple[str, ...],
    form: str,
    place: str | None,
    inputs: tuple[str, str],
    epsilon: str | None,
    delta: str | None,
) -> None:
    """Try to break the guarantee of every mechanism, or of one of your own.

    The exit code is 3 if one is broken.
    """
    if context.invoked_subcommand is not None:
        return
    if place is not None:
        if names:
            raise click.UsageError("--mechanism and --function: name one of them.")
        claim = claim_of(epsilon, delta)
        with _progress() as bar:
            task = bar.add_task(place, total=1)
            result = audit_function(place, inputs, claim, runs, _progress_within(bar, task, 0))
        _show_function(result, form)
        return
    if epsilon is not None or delta is not None:
        raise click.UsageError("--epsilon and --delta state the claim of --function.")
    results = _check_all(_choose_mechanisms(names), runs)
    if form == "json":
        click.echo(as_json([_json(checked) for checked in results]))
    else:
        say(_table(results))
    broken = [checked.promised.name for checked in results if checked.verdict is Verdict.VIOLATED]
    if broken:
        raise Failed(
            f"Broken promises: {', '.join(broken)}.",
            remedy="Answer nothing with these mechanisms, and report it: it is a fault of sfumato.",
        )


def _show_function(result: Audit, form: str) -> None:
    """Prints the result for the user's own mechanism.

    Raises:
        Failed: the claim is violated.
    """
    click.echo(as_json(_runs_json(result)) if form == "json" else str(result))
    if result.verdict is Verdict.VIOLATED:
        raise Failed(
            f"The claim of {result.mechanism} is broken.",
            remedy="Do not release anything with this function.",
        )


def _choose_mechanisms(names: Sequence[str]) -> list[Promised]:
    """Returns the named mechanisms, or all, in the order of the catalogue."""
    known = {promised.name: promised for promised in catalogue()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.BadParameter(
            f"no mechanism {unknown[0]!r}; there are {', '.join(known)}", param_hint="--mechanism"
        )
    return [promised for name, promised in known.items() if not names or name in names]


def _check_all(chosen: Sequence[Promised], runs: int) -> list[Checked]:
    """Checks mechanisms, with a progress bar on a terminal."""
    with _progress() as bar:
        task = bar.add_task("mechanisms", total=len(chosen))
        results: list[Checked] = []
        for promised in chosen:
            done = len(results)
            bar.update(task, description=promised.name, completed=done)
            results.append(promised.check(runs, _progress_within(bar, task, done)))
    return results


def _progress() -> Progress:
    """Returns a progress bar, which is hidden if stderr is not a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _progress_within(bar: Progress, task: TaskID, before: int) -> Callable[[int, int], None]:
    """Returns a callback that advances the bar while one mechanism is checked."""
    return lambda done, total: bar.update(task, completed=before + done / total)


def _table(results: Sequence[Checked]) -> str:
    """Returns the results as a table with a legend."""
    rows = []
    for checked in results:
        verdict = _PROMISE[checked.verdict]
        name = checked.promised.name
        row = (name, _claim(checked), _exact(checked), *_runs(checked), verdict)
        rows.append(row)
    return f"{table([_HEADING, *rows])}\n\n" + "\n".join(_legend(results))


def _legend(results: Sequence[Checked]) -> Iterator[str]:
    """Yields the lines that explain the columns of the table."""
    yield (
        "exact: bounds of the true epsilon (or rho), "
        "by the output laws on the worst neighbours known."
    )
    if any(checked.runs for checked in results):
        yield (
            "runs: a lower bound that is wrong with the probability shown. "
            "notices: what would have been found"
        )
        yield (
            "violated, an epsilon or a delta at the claimed epsilon; "
            "runs never prove that a promise holds."
        )
    held = sum(checked.verdict is Verdict.HOLDS for checked in results)
    yield f"{held} of {len(results)} are proved to hold, on the neighbours compared."


def _claim(checked: Checked) -> str:
    """Returns the claimed guarantee, for the table."""
    claim = checked.claim
    name, value = ("rho", claim.rho) if claim.epsilon is None else ("epsilon", claim.epsilon)
    cost = f"{name} {number(value)}"
    if claim.delta:
        return f"{cost}, delta {number(claim.delta)}"
    return cost


def _exact(checked: Checked) -> str:
    """Returns the bounds that the exact distributions give, for the table."""
    law = checked.law
    if law is None:
        return "-"
    if checked.claim.epsilon is not None:
        return f"epsilon {shown(law.epsilon)}"
    return f"rho {shown(_rho(checked))}"


def _runs(checked: Checked) -> tuple[str, str, str]:
    """Returns the bound from the runs, its error probability, and the detectable epsilon, as text."""
    result = checked.runs
    if result is None:
        return ("-", "-", "-")
    bound = f"{result.epsilon:.4g}"
    if result.delta:
        bound = f"{bound} (delta {number(result.delta)})"
    notices = []
    if math.isfinite(result.notices):
        notices.append(f"epsilon {result.notices:.3g}")
    if result.notices_delta < 1:
        notices.append(f"delta {result.notices_delta:.2g}")
    return bound, f"{float(1 - result.confidence):.1g}", " or ".join(notices) or "nothing"


def _rho(checked: Checked) -> Bracket:
    """Returns bounds of the true rho, over the neighbours compared."""
    assert checked.law is not None
    truths = []
    for finding in checked.law.findings:
        if finding.measure is Measure.RHO:
            truths.append(finding.truth)
    lower = max(truth.lower for truth in truths)
    return Bracket(lower, max(truth.upper for truth in truths))


def _json(checked: Checked) -> Json:
    """Returns a result as JSON.

    Exact numbers are strings, cut to six digits if they are long; numbers beyond all floats are
    null.
    """
    claim = checked.claim
    claimed: dict[str, Json] = {}
    if claim.epsilon is None:
        claimed["rho"] = number(claim.rho)
    else:
        claimed["epsilon"] = number(claim.epsilon)
    claimed["delta"] = number(claim.delta)
    return {
        "mechanism": checked.promised.name,
        "claim": claimed,
        "exact": _law_json(checked.law),
        "runs": _runs_json(checked.runs),
        "verdict": checked.verdict.value,
    }


def _law_json(law: Verification | None) -> Json:
    """Returns the bounds that the exact distributions give, as JSON."""
    if law is None:
        return None
    findings: list[Json] = []
    for finding in law.findings:
        bounds = finding.truth
        truth: list[Json] = [_finite(bounds.lower), _finite(bounds.upper)]
        findings.append({"measure": finding.measure.value, "truth": truth})
    return {
        "epsilon": [_finite(law.epsilon.lower), _finite(law.epsilon.upper)],
        "delta": number(law.claim.delta + law.tolerance),
        "findings": findings,
        "verdict": law.verdict.value,
    }


def _runs_json(result: Audit | None) -> Json:
    """Returns the result of the runs as JSON."""
    if result is None:
        return None
    trials: list[Json] = []
    for trial in result.trials:
        trials.append(
            {
                "set": trial.region,
                "hits": trial.hits,
                "misses": trial.misses,
                "runs": trial.runs,
            }
        )
    return {
        "epsilon": result.epsilon,
        "delta": number(result.delta),
        "confidence": str(result.confidence),
        "notices": {"epsilon": _finite(result.notices), "delta": result.notices_delta},
        "trials": trials,
        "verdict": result.verdict.value,
    }


def _finite(value: float) -> float | None:
    """Returns a number, None for infinity and NaN."""
    return value if math.isfinite(value) else None
