# SPDX-License-Identifier: Apache-2.0
"""Measures the tables of every level of a spine in one charge, and holds the estimates.

``census`` charges one measurement. All that a ``Census`` computes from the stored integers is
post-processing, and costs no budget.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.exact.rational import Number
from sfumato.noise import Integers
from sfumato.query.answer_files import rows_for_excel
from sfumato.query.session import Session
from sfumato.query.task import Stored
from sfumato.synopsis.geography.estimates import Estimates
from sfumato.synopsis.geography.facts import Impossible, Totals
from sfumato.synopsis.geography.least_squares import by_axes
from sfumato.synopsis.geography.long_form import LongForm
from sfumato.synopsis.geography.page import page
from sfumato.synopsis.geography.plan import (
    CensusPlan,
    Split,
    Tables,
    census_plan,
)
from sfumato.synopsis.geography.quality import Quality, quality
from sfumato.synopsis.geography.spine import Spine
from sfumato.synopsis.geography.topdown import TopDown, least_totals
from sfumato.synopsis.geography.tree import Floats

# Called with the name of each level that is estimated.
Progress = Callable[[str], object]


def census(
    session: Session,
    table: str,
    spine: Spine,
    *,
    tables: Tables,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    recodes: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    zeros: Sequence[Impossible] = (),
    public_totals: Totals | None = None,
    split: str | None = None,
) -> "Census":
    """Measures tables of every level of a geography in one charge; all that follows costs no
    budget.

    Args:
        session: who asks.
        table: the private table.
        spine: the geography, and the columns of the table that say where a row lies.
        tables: for a level the axes of its table, ``{"county": ["age", "sex"]}``, or a list of the
            axes of several; ``[]`` is the total. An axis is a declared column or a recode.
        epsilon, rho, delta: the cost of all tables together, as in ``session.marginals``.
        recodes: axes that are expressions of SQL, ``{"age_group": "CASE WHEN age < 15 ... END"}``.
        weights: what the mean squared error of a level counts when the cost is split; 1 each.
        zeros: cells that are impossible, as axes with labels:
            ``[{"age_group": ["0-14"], "status": ["married"]}]``.
        public_totals: totals that are public already and are kept exactly, as numbers for levels
            and areas: ``{"state": {"Vermont": 624000}}``.
        split: the name of another of the ``splits`` of ``census_plan``.

    Raises:
        UnknownName, MissingDeclaration, InvalidDeclaration, WrongUse: something is not declared, or
            declarations contradict one another; nothing is charged.
        Others as ``Session.ask``.

    >>> import sfumato as sf, tempfile
    >>> spine = Spine("state > county", pa.table({"state": ["A", "A", "B"], "county": [1, 2, 3]}))
    >>> columns = {"county": sf.Integer(1, 3), "sex": sf.Category("F", "M")}
    >>> people = pa.table({"county": [1, 1, 2, 3], "sex": ["F", "M", "M", "F"]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": sf.Table(people, columns=columns)}, dataset="tiny",
    ...                 budget=sf.Budget(10**5), ledger=folder.name + "/l.db") as session:
    ...     found = census(session, "people", spine, epsilon=5000,
    ...                    tables={"state": ["sex"], "county": []})
    >>> found.table("state", ["sex"]).select(["state", "sex", "estimate"]).to_pylist()[:2]
    [{'state': 'A', 'sex': 'F', 'estimate': 1}, {'state': 'A', 'sex': 'M', 'estimate': 2}]
    >>> folder.cleanup()
    """
    planned = census_plan(
        session.dataset,
        table,
        spine,
        tables=tables,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        recodes=recodes,
        weights=weights,
        zeros=zeros,
        public_totals=public_totals,
    )
    return measure_census(session, planned, split=split)


def measure_census(session: Session, planned: CensusPlan, *, split: str | None = None) -> "Census":
    """Measures a census as planned, in one charge, and returns it; see ``census``."""
    chosen = planned.named(split)
    stored = session.ask(planned.of(chosen))
    return Census(planned, chosen, stored, repr(session.budget))


class Census:
    """The noisy tables of a census, and the estimates computed from them, which cost no budget."""

    def __init__(
        self,
        plan: CensusPlan,
        split: Split,
        stored: Stored,
        account: str,
    ) -> None:
        self.plan = plan
        self.split = split
        self.stored = stored
        self.account = account
        self._estimated: list[Integers] = []

    @cached_property
    def least_squares(self) -> list[Floats]:
        """The least-squares estimate of each level's detail table: unbiased, not rounded.

        The detail table of a level has all axes of the tables of this level and below. Residuals of
        it that no table determines are 0. Public totals are used, impossible cells are not.
        """
        noisy = self.plan.of(self.split).noisy(self.stored.body)
        return self.plan.squares(self.split).estimates(noisy)

    @cached_property
    def counts(self) -> list[Integers]:
        """The published estimate of each level's detail table.

        It has non-negative integers; the children of each area add up to it, cell by cell.
        """
        return self._estimated or topdown(self.plan).estimates(self._improved)

    @property
    def _improved(self) -> list[Floats]:
        """Least squares, given that impossible cells are 0."""
        return self.plan.given_zeros(self.split, self.least_squares)

    @property
    def estimates(self) -> Estimates:
        """All estimates, with their errors and intervals."""
        return Estimates(self.plan, self.split, self.least_squares, self.counts)

    def estimate(self, progress: Progress | None = None) -> list[Integers]:
        """Computes and returns ``counts``; calls ``progress`` with the name of each finished level."""
        if progress is None:
            return self.counts

        def done(level: int) -> None:
            progress(self.plan.spine.levels[level])

        self._estimated = topdown(self.plan).estimates(self._improved, done)
        return self.counts

    def table(
        self,
        level: str,
        axes: Sequence[str],
        confidence: Number = "0.95",
    ) -> pa.Table:
        """Returns a row for each cell of a table of a level, with its estimate and margin of error.

        ``estimate`` is the published whole number. ``standard_error`` is that of least squares,
        exact; ``margin`` is not exceeded by the error of least squares with at least this
        probability, so from ``low`` to ``high``, around least squares, is an interval that holds
        the number of the data. The published number is mostly nearer than least squares, but where
        counts are small it is biased away from 0.

        Raises:
            WrongUse: no such level, or axes that no table of the level or below has together.
        """
        return LongForm(self.estimates).one(level, axes, confidence)

    def to_arrow(self) -> pa.Table:
        """Returns all tables as one Arrow table in long form: a row per cell.

        Columns of axes that a table does not have are null.
        """
        return LongForm(self.estimates).every()

    def to_csv(self, path: str | Path | pa.NativeFile, *, excel: bool = False) -> None:
        """Writes all tables to a CSV file, or into an open file of Arrow.

        ``excel``: as Excel opens it, with six significant digits of each error. The estimates stay
        as they are: they add up.
        """
        tables = self.to_arrow()
        if not excel:
            pa.csv.write_csv(tables, path)
            return
        for place, field in enumerate(tables.schema):
            if pa.types.is_floating(field.type):
                values = tables.column(place).to_pylist()
                digits = [None if value is None else float(f"{value:.6g}") for value in values]
                tables = tables.set_column(place, field, [digits])
        content = rows_for_excel(tables)
        if isinstance(path, pa.NativeFile):
            path.write(content)
        else:
            Path(path).write_bytes(content)

    def to_parquet(self, path: str | Path | pa.NativeFile) -> None:
        """Writes all tables to a Parquet file, or into an open file of Arrow."""
        pa.parquet.write_table(self.to_arrow(), path)

    def quality(self, runs: int = 3) -> Quality:
        """Compares the errors of the estimates with the planned errors.

        The error of the published numbers is simulated: this estimate is taken as the truth, and is
        measured and estimated ``runs`` times with new noise. Nothing is charged.
        """
        return quality(self.estimates, topdown=topdown(self.plan), runs=runs)

    def page(self, runs: int = 3) -> str:
        """Returns an HTML page, without scripts, that shows the census."""
        found = self.quality(runs)
        charge = self.stored.charge
        return page(self.estimates, found, account=self.account, charge=charge)

    def _repr_html_(self) -> str:
        return self.page(runs=1)

    def __repr__(self) -> str:
        axes = self.plan.design.detail(0)
        whole = by_axes(self.counts[0], axes, ()).sum()
        tables = len(self.plan.design.tables)
        return (
            f"Census of {self.plan.population.table!r} down {self.plan.spine!r}: {tables} tables, "
            f"{int(whole):,} rows\ncharge {self.stored.charge[:12]}"
        )


def topdown(plan: CensusPlan) -> TopDown:
    """Returns the ``TopDown`` of a plan: its design, impossible cells and public totals."""
    least = least_totals(plan.design, plan.public)
    return TopDown(plan.design, plan.impossible, plan.public, least)
