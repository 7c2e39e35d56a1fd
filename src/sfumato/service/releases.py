# SPDX-License-Identifier: Apache-2.0
"""What is charged beside answers to SQL: diagnoses, marginals, publications, and declared runs.

Each has an account of the caller's (``Desk.account``) and the body of a request. What it returns is
whole before the charge counts as answered, so a failure to show it is told as one of the question.
"""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import sfumato as sf
from sfumato.accounting.budget_gates import NOTHING
from sfumato.config.released import Result, Run
from sfumato.errors import Cancelled, InvalidConfig, WrongUse
from sfumato.privacy.event import Json
from sfumato.query.account import amounts
from sfumato.query.marginal_table import Marginals
from sfumato.query.publication import Publication
from sfumato.query.session import Session
from sfumato.service.charging import Account, affordable, ask_charged, learns_limits
from sfumato.service.questions import (
    arguments_of,
    cells_of,
    cost_arguments_of,
    require_statements,
    time_limit_of,
)
from sfumato.service.refusals import NotVisible


def diagnose(account: Account, form: Mapping[str, Any]) -> Result:
    """How much clipping and bounding change in a question, as ``Session.diagnose``.

    Raises:
        Ended: it has no answer; says whether it was charged.
    """

    def ask() -> Result:
        diagnosis = account.session.diagnose(**arguments_of(form))
        answers = diagnosis.answers
        return Result(
            json.dumps(diagnosis.to_json()).encode(),
            tuple(answer.charge_id for answer in answers),
            all(answer.recalled for answer in answers),
        )

    return ask_charged(account, ask, is_one_charge=False)


def preview_marginals(account: Account, form: Mapping[str, Any]) -> dict[str, Json]:
    """The cost of marginals and the half-width of their cells; free.

    Raises:
        SfumatoError: as ``Session.marginals``.
    """
    task, notes = account.session.plan_marginals(*cells_of(form), **cost_arguments_of(form))
    cost = account.session.price(task)
    return {
        "cost": cost.to_json(),
        "half_width": task.mechanism.error("0.95") / task.plan.refinement,
        "notes": list(notes),
        **affordable(account, cost.charge),
    }


def marginals(
    account: Account,
    form: Mapping[str, Any],
    key: str | None,
    stop: sf.Stop | None,
    write: Callable[[Marginals], bytes],
) -> Result:
    """Noisy marginals of one table, as ``Session.marginals``; ``write`` makes their bytes.

    Raises:
        Ended: it has no answer; says whether it was charged.
    """

    def ask() -> Result:
        released = account.session.marginals(
            *cells_of(form),
            **cost_arguments_of(form),
            key=key,
            stop=stop,
            time_limit=time_limit_of(form),
        )
        return Result(write(released), (released.charge_id,), released.recalled)

    return ask_charged(account, ask, is_one_charge=not learns_limits(account))


def preview_publication(account: Account, form: Mapping[str, Any]) -> dict[str, Json]:
    """The cost of questions that are planned together, and their errors; free.

    Raises:
        SfumatoError: as ``Session.plan``.
    """
    planned = _planned(account.session, form)
    lines: list[Json] = [
        {
            "name": line.name,
            "cost": amounts(line.charge),
            "columns": list[Json](line.preview.column_forms),
            "errors": list[Json](line.preview.error()),
            "shared": list[Json](line.shared),
            "stored": line.stored,
        }
        for line in planned.lines
    ]
    due = NOTHING
    for line in planned.lines:
        due = due if line.stored else due + line.charge
    return {"cost": amounts(planned.cost), "questions": lines, **affordable(account, due)}


def publish(account: Account, form: Mapping[str, Any], stop: sf.Stop | None) -> Result:
    """Asks questions that are planned together; each answer is stored at once.

    A stop takes effect between two of them.

    Raises:
        Ended: not all are answered; says whether one was charged.
    """

    def ask() -> Result:
        planned = _planned(account.session, form)

        def answered(_name: str, done: int, count: int) -> None:
            if stop is not None and stop.is_stopped and done < count:
                raise Cancelled(paid=True)

        answers = planned.run(answered)
        whole = b",".join(
            json.dumps(name).encode() + b":" + answer.bytes for name, answer in answers.items()
        )
        return Result(
            b'{"answers":{' + whole + b"}}",
            tuple(answer.charge_id for answer in answers.values()),
            all(answer.recalled for answer in answers.values()),
        )

    return ask_charged(account, ask, is_one_charge=False)


def _planned(session: Session, form: Mapping[str, Any]) -> Publication:
    split = {}
    for name in ("weights", "sizes"):
        if form.get(name) is not None:
            if not isinstance(form[name], Mapping):
                raise WrongUse(f"{name} of another form.", allowed='{"name": 2}')
            split[name] = form[name]
    statements = require_statements(form.get("questions"))
    return session.plan(statements, **cost_arguments_of(form), **split)


def preview_run(account: Account, section: str, name: str) -> dict[str, Json]:
    """The cost of what the file declares under a name, and the text of its plan; free.

    Raises:
        NotVisible: the file declares no such thing.
        SfumatoError: as the planning of its kind.
    """
    cost, text = _declared(account, section, name).preview(account.session)
    return {"cost": cost.to_json(), "plan": text, **affordable(account, cost.charge)}


def run(
    account: Account,
    section: str,
    name: str,
    stop: sf.Stop | None,
    write: Callable[[Result], Result],
) -> Result:
    """Measures what the file declares under a name, once; the same again is free.

    ``write`` makes another form of the result.

    Raises:
        NotVisible: the file declares no such thing.
        Ended: it has no answer; says whether it was charged.
    """
    declared = _declared(account, section, name)
    return ask_charged(
        account, lambda: write(declared.measure(account.session, stop)), is_one_charge=False
    )


def _declared(account: Account, section: str, name: str) -> Run:
    """Reads what the file declares; its places and file names reach nobody else."""
    served = account.served
    if name not in served.declared.sections.get(section, ()):
        raise NotVisible
    # these rooms take a second to import, and few services need them
    kinds = import_module("sfumato.config.runs").KINDS
    try:
        made: Run = kinds[section](str(served.path), name, account.session)
        return made
    except InvalidConfig:
        raise InvalidConfig(
            f"[{section}.{name}] of the file cannot be run.",
            remedy="The owner tries it in the shell.",
        ) from None
