# SPDX-License-Identifier: Apache-2.0
"""Audits a whole system: the installed engine, an owner's declarations and statements.

No declared source is opened, and nothing is charged: all rows are made up. *Forms*: each physical
form of the tables gives the integers of the reference engine, or is refused when it is opened.
*Neighbours*: a unit that enters (or is replaced) moves the exact integers of every step by at most
the claimed distance. *The door*: in real sessions over scratch ledgers, the noise of many cells is
the stated one, and all else that an asker sees is the same on both worlds.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.audit.declared import DeclaredTask, graph_tasks
from sfumato.audit.door import NOISES, PREFIX, differing_statements, noisy_cells
from sfumato.audit.forms import FORMS, Form
from sfumato.audit.made_up import SHAPES, World
from sfumato.audit.verdict import Verdict
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidNumber, SfumatoError
from sfumato.metadata.column import Array, Date, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.stages import Bounded
from sfumato.privacy.unit import Node, Relation
from sfumato.query.price import Price, price
from sfumato.query.release import SqlTask
from sfumato.query.witness import MadeUp, Step, questions_of, reference_integers, sql_task

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
    """The outcome of a question on one physical form of the tables: the integers of the reference,
    others, or a refusal.

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
    ``questions`` were asked through sessions on two worlds; the noise of ``cells`` numbers was
    tested.
    """

    seed: int
    statements: tuple[str, ...]
    refused: tuple[str, ...]
    steps: int
    pairs: int
    forms: tuple[Result, ...]
    findings: tuple[str, ...]
    questions: int = 0
    cells: int = 0

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
    tasks: Sequence[DeclaredTask] = (),
    progress: Callable[[int, int], None] | None = None,
) -> System:
    """Tries to refute declarations and statements on this installation, with made-up rows.

    ``statements``: by default some for each column. ``rounds``: pairs of neighbours; each is tried
    with every statement. ``tasks`` (``declared_tasks``), and questions about the graphs of tables
    of edges, are tried on a pair of each shape. ``seed`` reproduces a finding.
    ``progress(done, total)`` is called after each form and each round.

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
    tried, refused = _compiled(statements, dataset)
    tasks = (*tasks, *graph_tasks(dataset))
    chosen = FORMS if forms is None else forms
    # sessions are slower than engines: one pair of each shape
    doors = min(rounds, len(SHAPES))
    total = len(chosen) + rounds + doors + 1
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
    answered = [statement.text for statement in tried]
    questions = 0
    for number in range(doors):
        questions += _try_door(World(dataset, seed + number), number, answered, findings)
        steps += _try_tasks(World(dataset, seed + number), number, tasks, refused, findings)
        report(len(chosen) + rounds + number + 1, total)
    cells = _try_noise(seed, findings)
    report(total, total)
    return System(
        seed=seed,
        statements=(*answered, *(task.name for task in tasks if task.name not in refused)),
        refused=tuple(refused),
        steps=steps,
        pairs=rounds,
        forms=tuple(results),
        findings=tuple(findings),
        questions=questions,
        cells=cells,
    )


def usual_statements(dataset: Dataset) -> Iterator[str]:
    """Yields statements on every column of the private tables.

    >>> from sfumato.metadata.table import Table
    >>> people = Table("nowhere.csv", columns={"age": Integer(0, 99)})
    >>> list(usual_statements(Dataset("d", {"people": people})))[1]
    'SELECT SUM("age") AS s, COUNT("age") AS n FROM "people"'
    """
    for name, table in dataset.tables.items():
        if table.public or isinstance(table.unit, Node):
            # rows about two units at once are asked as a graph alone
            continue
        yield f'SELECT COUNT(*) AS n FROM "{name}"'
        for column, kind in table.columns.items():
            if isinstance(kind, Integer | Real):
                yield f'SELECT SUM("{column}") AS s, COUNT("{column}") AS n FROM "{name}"'
                yield f'SELECT MEDIAN("{column}") AS m FROM "{name}"'
            elif isinstance(kind, Date | Timestamp):
                month = f'MONTH("{column}")'
                yield f'SELECT {month} AS m, COUNT(*) AS n FROM "{name}" GROUP BY {month}'
            elif not isinstance(kind, Array):
                yield f'SELECT "{column}", COUNT(*) AS n FROM "{name}" GROUP BY "{column}"'


def _compiled(
    statements: Sequence[str], dataset: Dataset
) -> tuple[list[_Statement], dict[str, None]]:
    """Plans statements, by default some for each column; returns those that a price can buy, and
    the texts of the others, each once.
    """
    texts = list(dict.fromkeys(statements)) or list(usual_statements(dataset))
    compiled = [_compile(text, dataset) for text in texts]
    tried = [statement for statement in compiled if statement.tasks]
    if not tried:
        raise InvalidDeclaration(
            "No statement compiles on these declarations.", allowed="statements of these tables"
        )
    return tried, dict.fromkeys(each.text for each in compiled if not each.tasks)


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


@dataclass(frozen=True, slots=True)
class _Expected:
    """The plans of statements over made-up rows, and their integers by the reference engine."""

    frames: Mapping[str, pa.Table]
    texts: Sequence[str]
    plans: Sequence[Bounded]
    integers: Sequence[Any]

    @classmethod
    def of(cls, world: World, tried: Sequence[_Statement]) -> "_Expected":
        """Makes rows and reads them with the reference engine."""
        frames = world.rows(_ROWS)
        texts, plans = [], []
        for statement in tried:
            for plan in questions_of(statement.tasks[0], world.dataset):
                texts.append(statement.text)
                plans.append(plan)
        rows = {name: frame.to_pylist() for name, frame in frames.items()}
        return cls(frames, texts, plans, reference_integers(plans, rows))

    def differing(self, integers: Sequence[Any]) -> list[str]:
        """Returns the statements of which an engine gives other integers, each once."""
        pairs = zip(self.texts, self.integers, integers, strict=True)
        return list(dict.fromkeys(text for text, own, other in pairs if own != other))


def _try_forms(
    world: World, tried: Sequence[_Statement], forms: Sequence[Form], findings: list[str]
) -> Iterator[Result]:
    """Yields the result of each form, and appends what differs to ``findings``."""
    expected = _Expected.of(world, tried)
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        for number, form in enumerate(forms):
            declared = {
                name: form.declare(expected.frames[name], table, Path(folder, f"{number}-{place}"))
                for place, (name, table) in enumerate(world.dataset.tables.items())
            }
            yield _try_form(form, declared, expected, world.seed, findings)


def _try_form(
    form: Form,
    declared: Mapping[str, Table],
    expected: _Expected,
    seed: int,
    findings: list[str],
) -> Result:
    """Returns the result of one form, and appends what differs to ``findings``."""
    try:
        engine = MadeUp([declared])
    except SfumatoError as refusal:
        return Result(form.name, f"refused: {type(refusal).__name__}")
    with engine:
        try:
            integers = engine.integers(expected.plans)
        except EngineFailed:
            findings.append(f"{form.name}: fails after the charge (seed {seed})")
            return Result(form.name, "FAILS after the charge")
    differing = expected.differing(integers)
    findings.extend(
        f"{form.name}: other integers than the reference (seed {seed}): {text}"
        for text in differing
    )
    return Result(form.name, DIFFERS if differing else SAME)


def _worlds(world: World, number: int) -> tuple[dict[str, Table], dict[str, Table], str]:
    """Returns the tables of two neighbouring worlds, and the shape of the unit that differs."""
    base = world.rows(_ROWS)
    shape = SHAPES[number % len(SHAPES)]
    other = world.with_unit(base, shape, world.seed)
    if world.dataset.relation is Relation.REPLACE_ONE:
        replaced = SHAPES[(number // len(SHAPES) + 1) % len(SHAPES)]
        base = world.with_unit(base, replaced, world.seed)
    return world.tables(base), world.tables(other), shape


def _try_pair(world: World, number: int, tried: Sequence[_Statement], findings: list[str]) -> int:
    """Tries every statement on a pair of neighbours; returns how many steps were compared."""
    one, other, shape = _worlds(world, number)
    steps = 0
    with MadeUp([one, other]) as worlds:
        for statement in tried:
            for task in statement.tasks:
                compared = worlds.steps(task, world.dataset)
                steps += len(compared)
                findings.extend(_moved_too_far(compared, shape, world.seed, statement.text))
    return steps


def _moved_too_far(steps: Sequence[Step], shape: str, seed: int, name: str) -> Iterator[str]:
    """Yields a finding for each step that moved further than its claim."""
    for step in steps:
        if not step.holds:
            yield f"neighbours, a unit of shape {shape} (seed {seed}): {step}: {name}"


def _try_tasks(
    world: World,
    number: int,
    declared: Sequence[DeclaredTask],
    refused: dict[str, None],
    findings: list[str],
) -> int:
    """Tries declared tasks on a pair of neighbours; returns how many steps were compared.

    Those that are not compared are added to ``refused``.
    """
    if not declared:
        return 0
    one, other, shape = _worlds(world, number)
    steps = 0
    with MadeUp([one, other]) as worlds:
        for each in declared:
            try:
                compared = worlds.steps(each.task, world.dataset) if each.task else []
            except SfumatoError:
                compared = []
            if not compared:
                refused[each.name] = None
            steps += len(compared)
            findings.extend(_moved_too_far(compared, shape, world.seed, each.name))
    return steps


def _try_door(world: World, number: int, texts: Sequence[str], findings: list[str]) -> int:
    """Asks statements through sessions on a pair of neighbours; returns how many were asked."""
    one, other, shape = _worlds(world, number)
    findings.extend(
        f"the door, a unit of shape {shape} (seed {world.seed}): more than released numbers "
        f"differs: {text}"
        for text in differing_statements(world.dataset, one, other, texts)
    )
    return len(texts)


def _try_noise(seed: int, findings: list[str]) -> int:
    """Tests the noise of many cells in each family; returns the number of cells."""
    cells = 0
    for name in NOISES:
        result = noisy_cells(name)
        cells += result.values
        if result.verdict is Verdict.VIOLATED:
            findings.append(f"the door, {name}: {result.sentence}")
    return cells
