# SPDX-License-Identifier: Apache-2.0
"""Audits a whole system: the installed engine, an owner's declarations and statements.

No declared source is opened, and nothing is charged: all rows are made up. *Forms*: each physical
form of the tables gives the integers of the reference engine, or is refused when it is opened.
*Neighbours*: a unit that enters (or is replaced) moves the exact integers of every step by at most
the claimed distance.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.audit.forms import FORMS, Form
from sfumato.audit.made_up import SHAPES, World
from sfumato.audit.verdict import Verdict
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidNumber, SfumatoError
from sfumato.metadata.column import Date, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.stages import Bounded
from sfumato.privacy.unit import Relation
from sfumato.query.price import Price, price
from sfumato.query.release import SqlTask
from sfumato.query.witness import MadeUp, questions_of, reference_integers, sql_task

_ROWS = 24
_MOST_ROUNDS = 10_000
# In both families of noise; a threshold needs a delta.
_PRICES = (
    (price(epsilon=1), price(epsilon=1, delta="1e-6")),
    (price(rho=1), price(rho=1, delta="1e-6")),
)
SAME = "as the reference"
DIFFERS = "DIFFERS"


@dataclass(frozen=True, slots=True)
class Result:
    """What a physical form of the tables gave: the integers of the reference, others, or a refusal.

    >>> Result("csv", SAME).result
    'as the reference'
    """

    name: str
    result: str


@dataclass(frozen=True, slots=True)
class System:
    """The result of ``system``.

    ``statements`` were tried, ``refused`` were not: they do not compile or need a limit that no
    declaration states. ``findings`` say what is violated, each with its statement, form and seed.
    """

    seed: int
    statements: tuple[str, ...]
    refused: tuple[str, ...]
    steps: int
    pairs: int
    forms: tuple[Result, ...]
    findings: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """VIOLATED or UNDECIDED: tries can never prove that a system holds."""
        return Verdict.VIOLATED if self.findings else Verdict.UNDECIDED

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        if self.findings:
            return f"VIOLATED: {len(self.findings)} findings, seed {self.seed}."
        return f"not refuted: {self.pairs} pairs, {len(self.forms)} forms, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement, and its task in each family of noise that can answer it."""

    text: str
    tasks: tuple[SqlTask, ...]


def system(
    dataset: Dataset,
    statements: Sequence[str] = (),
    *,
    rounds: int = 20,
    seed: int = 1,
    forms: Sequence[Form] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> System:
    """Tries to refute declarations and statements on this installation, with made-up rows.

    ``statements``: by default some for each column. ``rounds``: pairs of neighbours; each is tried
    with every statement. ``seed`` reproduces a finding. ``progress(done, total)`` is called after
    each form and each round.

    Raises:
        InvalidDeclaration: units or columns that are not made up; no statement that compiles.
        InvalidNumber: rounds below 1.

    >>> from sfumato.metadata.table import Table
    >>> people = Table("nowhere.csv", columns={"age": Integer(0, 99)})
    >>> print(system(Dataset("d", {"people": people}), rounds=2, forms=FORMS[:3]).sentence)
    not refuted: 2 pairs, 3 forms, seed 1
    """
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise InvalidNumber(f"rounds = {rounds}.", allowed="1 to 10,000")
    world = World(dataset, seed)
    texts = list(dict.fromkeys(statements)) or list(usual_statements(dataset))
    compiled = [_compile(text, dataset) for text in texts]
    tried = [statement for statement in compiled if statement.tasks]
    if not tried:
        raise InvalidDeclaration(
            "No statement compiles on these declarations.", allowed="statements of these tables"
        )
    chosen = FORMS if forms is None else forms
    total = len(chosen) + rounds
    report = progress or (lambda done, total: None)
    findings: list[str] = []
    results = []
    for done, result in enumerate(_try_forms(world, tried, chosen, findings), 1):
        results.append(result)
        report(done, total)
    steps = 0
    for number in range(rounds):
        steps += _try_pair(World(dataset, seed + number), number, tried, findings)
        report(len(chosen) + number + 1, total)
    return System(
        seed=seed,
        statements=tuple(statement.text for statement in tried),
        refused=tuple(statement.text for statement in compiled if not statement.tasks),
        steps=steps,
        pairs=rounds,
        forms=tuple(results),
        findings=tuple(findings),
    )


def usual_statements(dataset: Dataset) -> Iterator[str]:
    """Yields statements on every column of the private tables.

    >>> from sfumato.metadata.table import Table
    >>> people = Table("nowhere.csv", columns={"age": Integer(0, 99)})
    >>> list(usual_statements(Dataset("d", {"people": people})))[1]
    'SELECT SUM("age") AS s, COUNT("age") AS n FROM "people"'
    """
    for name, table in dataset.tables.items():
        if table.public:
            continue
        yield f'SELECT COUNT(*) AS n FROM "{name}"'
        for column, kind in table.columns.items():
            if isinstance(kind, Integer | Real):
                yield f'SELECT SUM("{column}") AS s, COUNT("{column}") AS n FROM "{name}"'
                yield f'SELECT MEDIAN("{column}") AS m FROM "{name}"'
            elif isinstance(kind, Date | Timestamp):
                month = f'MONTH("{column}")'
                yield f'SELECT {month} AS m, COUNT(*) AS n FROM "{name}" GROUP BY {month}'
            else:
                yield f'SELECT "{column}", COUNT(*) AS n FROM "{name}" GROUP BY "{column}"'


def _compile(text: str, dataset: Dataset) -> _Statement:
    """Plans a statement at each price that can buy it."""
    tasks = []
    for without, beside in _PRICES:
        task = _task(text, dataset, without) or _task(text, dataset, beside)
        if task is not None:
            tasks.append(task)
    return _Statement(text, tuple(tasks))


def _task(text: str, dataset: Dataset, cost: Price) -> SqlTask | None:
    try:
        return sql_task(text, dataset, cost)
    except SfumatoError:
        return None


def _try_forms(
    world: World, tried: Sequence[_Statement], forms: Sequence[Form], findings: list[str]
) -> Iterator[Result]:
    """Yields the result of each form, and appends what differs to ``findings``."""
    frames = world.rows(_ROWS)
    plans: list[tuple[str, Bounded]] = []
    for statement in tried:
        questions = questions_of(statement.tasks[0], world.dataset)
        plans.extend((statement.text, plan) for plan in questions)
    rows = {name: frame.to_pylist() for name, frame in frames.items()}
    bounded = [plan for _, plan in plans]
    expected = reference_integers(bounded, rows)
    folder = Path(tempfile.mkdtemp(prefix="sfumato-audit-"))
    try:
        for number, form in enumerate(forms):
            declared = {
                name: form.declare(frames[name], table, folder / f"{number}-{place}")
                for place, (name, table) in enumerate(world.dataset.tables.items())
            }
            try:
                engine = MadeUp([declared])
            except SfumatoError as refusal:
                yield Result(form.name, f"refused: {type(refusal).__name__}")
                continue
            with engine:
                try:
                    got = engine.integers(bounded)
                except EngineFailed:
                    findings.append(f"{form.name}: fails after the charge (seed {world.seed})")
                    yield Result(form.name, "FAILS after the charge")
                    continue
            wrong = [
                text
                for (text, _), one, other in zip(plans, got, expected, strict=True)
                if one != other
            ]
            findings.extend(
                f"{form.name}: other integers than the reference (seed {world.seed}): {text}"
                for text in dict.fromkeys(wrong)
            )
            yield Result(form.name, DIFFERS if wrong else SAME)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _try_pair(world: World, number: int, tried: Sequence[_Statement], findings: list[str]) -> int:
    """Tries every statement on a pair of neighbours; returns how many steps were compared."""
    dataset = world.dataset
    base = world.rows(_ROWS)
    shape = SHAPES[number % len(SHAPES)]
    other = world.with_unit(base, shape, world.seed)
    if dataset.relation is Relation.REPLACE_ONE:
        replaced = SHAPES[(number // len(SHAPES) + 1) % len(SHAPES)]
        base = world.with_unit(base, replaced, world.seed)
    steps = 0
    with MadeUp([world.tables(base), world.tables(other)]) as worlds:
        for statement in tried:
            for task in statement.tasks:
                compared = worlds.steps(task, dataset)
                steps += len(compared)
                findings.extend(
                    f"neighbours, a unit of shape {shape} (seed {world.seed}): {step}: "
                    f"{statement.text}"
                    for step in compared
                    if not step.holds
                )
    return steps
