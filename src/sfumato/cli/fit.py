# SPDX-License-Identifier: Apache-2.0
"""``sfumato fit``: fits a model that the file declares, or continues an interrupted run."""

from typing import Any

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import require_outputs
from sfumato.cli.shortfall import say_shortfall
from sfumato.cli.waiting import watching
from sfumato.config.model import ModelConfig, read_model
from sfumato.errors import WrongUse
from sfumato.learning.fit import fit, preview, resume
from sfumato.learning.recipe import Progress
from sfumato.query.session import Session


@click.command("fit")
@click.argument("name")
@asks
@click.option(
    "--epsilon",
    help="With --delta, a block of noisy steps; alone, a pure cost: no delta of the file.",
)
@click.option("--delta", help="Beside --epsilon: the chance that epsilon may be exceeded.")
@click.option("--rho", help="The cost in zCDP.")
@click.option("--preview", "is_preview", is_flag=True, help="Show noise, steps and cost; free.")
@click.option(
    "--resume", "run", metavar="RUN", help="Go on with this run alone; never begin another."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="The file of the model.")
def command(
    name: str,
    asking: Asking,
    *,
    is_preview: bool,
    run: str | None,
    output: str | None,
    **cost: str | None,
) -> None:
    """Fit the model NAME of the file, once, for one cost.

    A model is declared as [models.NAME] with recipe, data, label, a cost and the settings of its
    recipe. The same fit again is answered from the ledger, at no cost. A fit that was interrupted
    goes on from its last checkpoint when it is called again.
    """
    require_outputs(asking.config, output)
    declared = read_model(asking.config, name)
    fit_arguments = declared.asked(cost)
    with watching(f"fitting {name}") as (engine, tell), asking.session(engine) as session:
        if is_preview:
            shown = preview(session, declared.recipe, declared.data, **fit_arguments)
            say(repr(shown))
            say_shortfall(shown.cost, session.budget)
            return

        def progress(place: int, places: int) -> None:
            tell(f"checkpoint {place} of {places}", place / places)

        try:
            model = _fit_model(session, declared, run, fit_arguments, progress)
        except KeyboardInterrupt:
            say(f"{name} goes on from its last checkpoint when it is fitted again.", err=True)
            raise
        budget = repr(session.budget)
    say(repr(model))
    if output is not None:
        _save(model, output)
        say(f"wrote {output}")
    say(budget)


def _fit_model(
    session: Session,
    declared: ModelConfig,
    run: str | None,
    fit_arguments: dict[str, Any],
    progress: Progress,
) -> Any:
    """Fits the model; continues the run that is named, if any."""
    if run is None:
        return fit(session, declared.recipe, declared.data, progress=progress, **fit_arguments)
    return resume(session, run, declared.recipe, declared.data, progress=progress, **fit_arguments)


def _save(model: Any, output: str) -> None:
    """Writes the model to a file."""
    try:
        model.save(output)
    except OSError as error:
        raise WrongUse(
            f"{output!r} cannot be written ({error.strerror}).",
            remedy="Name another path. The model is stored: fitted again, it is free.",
        ) from None
