# SPDX-License-Identifier: Apache-2.0
"""The report of a model: one self-contained HTML page for the users of its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.query.cost import Cost
from sfumato.show.page import page, tiles
from sfumato.show.render import number
from sfumato.synthetic.beside import Comparison
from sfumato.synthetic.charts import column_chart
from sfumato.synthetic.honest import Way
from sfumato.synthetic.page import (
    AGREES,
    APART,
    HIDDEN,
    LISTED,
    compared_html,
    section,
    table,
    text,
)
from sfumato.synthetic.quality import Fit, Quality
from sfumato.synthetic.task import Released

# The most columns that are drawn.
_PICTURES = 12
# The width of a square of the map, and of a letter beside it.
_CELL, _LETTER = 22, 8
# The most pairs that are named.
_NAMED = 200


@dataclass(frozen=True)
class Report:
    """The report of a model: measurements, fit of the rows, honest check, and what is not
    preserved.

    ``model.report()`` returns one.

    ``lost`` are additional sentences on what is not preserved, ``others`` the reports of other
    tables, ``tested`` scores on private rows of models trained on synthetic rows, ``compared``
    exact comparisons with public tables.
    """

    released: Released
    quality: Quality
    cost: Cost
    charge_id: str
    protected: str
    left_out: tuple[str, ...]
    lost: tuple[str, ...] = ()
    others: tuple["Report", ...] = ()
    tested: tuple[str, ...] = ()
    compared: tuple[Comparison, ...] = ()

    @property
    def html(self) -> str:
        """The report as an HTML page."""
        every = (self, *self.others)
        title = f"Synthetic {', '.join(each.released.base.schema.table for each in every)}"
        body = "\n".join(each.body for each in every)
        return page(title, body)

    @property
    def body(self) -> str:
        """Returns the part of the page about this table."""
        title = f"Synthetic {self.released.base.schema.table}"
        sections = [
            f"<header><h1>{text(title)}</h1><p>{text(self._summary)}</p></header>",
            self._tiles,
            section("The honest check", self._check),
            self._correlations,
            self._tests,
            self._public,
            section("Did your question survive?", self._survival),
            section("What is not kept", self._lost),
            self._ranges,
            section("Which columns go together", self._map),
            section("Columns", self._columns),
            section("Measured pairs", self._pairs),
            section("Who is protected", self._guarantee),
        ]
        return "\n".join(sections)

    def save(self, path: str | Path) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        lines = [self._summary]
        for fit in self.quality.checks:
            lines.append(f"check {' x '.join(fit.columns)}: {_verdict(fit)}")
        lines.append(f"{self.quality.unmeasured} pairs of columns were not measured together")
        if self.left_out:
            lines.append(f"left out: {', '.join(self.left_out)}")
        lines += [repr(each) for each in (*self.compared, *self.others)]
        return "\n".join(lines)

    @property
    def _summary(self) -> str:
        base = self.released.base
        rows = "rows" if base.counted is None else "units have rows"
        return (
            f"About {round(base.total):,} {rows} with {base.counted or len(base.sizes)} columns, "
            "drawn from a model of noisy counts. No row is that of a person. "
            f"Charge {self.charge_id}."
        )

    @property
    def _tiles(self) -> str:
        off = [fit.off for fit in self.quality.checks]
        rows = "rows" if self.released.base.counted is None else "units with rows"
        worst = f"{max(off):.2%}" if off else "none"
        numbers = [
            (number(round(self.released.base.total)), f"{rows} (noisy)"),
            (str(len(self.released.pairs)), "pairs of columns measured"),
            (worst, "largest error in the honest check, of all rows"),
            (_short(self.cost), "cost"),
        ]
        return tiles(numbers)

    @property
    def _check(self) -> str:
        if not self.quality.checks:
            return "<p>None was asked for.</p>"
        share = float(self.released.base.schedule.check)
        rows = []
        for fit in self.quality.checks:
            names, distance = " x ".join(fit.columns), f"{fit.distance:.3f}"
            rows.append([names, distance, f"{fit.noise:.3f}", _verdict(fit)])
        intro = (
            f"<p>{share:.0%} of the cost was spent on random pairs of columns and on some triples, "
            "counted in coarse cells. The model never saw these counts, so they judge the rows as "
            "new data would. Distances up to that of the noise alone mean that nothing wrong was "
            "seen.</p>"
        )
        header = ["columns", "distance", "of noise alone", "a cell is off by"]
        every = f"<details><summary>Each marginal</summary>{table(header, rows)}</details>"
        reading = (
            "<p>A share of all rows, such as that of the old who are ill, is typically off by as "
            "much as the last column says.</p>"
        )
        return intro + _ways(self.quality.ways) + reading + every

    @property
    def _correlations(self) -> str:
        """Returns the correlations of ordered columns, in the rows and in the check."""
        rows = []
        for each in self.quality.correlations:
            counted = f"{each.counted:.2f} \u00b1 {each.error:.2f}"
            apart = abs(each.rows - each.counted) > each.error
            words = APART if apart else AGREES
            rows.append([" x ".join(each.columns), f"{each.rows:.2f}", counted, words])
        if not rows:
            return ""
        return section(
            "Correlations",
            "<p>Of ordered columns that the honest check counted together, in its coarse cells, "
            "without missing values. The 95% interval is that of the noise of the check.</p>"
            + table(["columns", "in the rows", "in the check", "verdict"], rows),
        )

    @property
    def _ranges(self) -> str:
        """Returns the ranges of values of the rows."""
        if not self.quality.ranges:
            return ""
        rows = []
        for each in self.quality.ranges:
            rows.append([each.column, *each.declared, *each.rows])
        header = ["column", "least declared", "greatest declared", "least", "greatest"]
        return section(
            "Ranges",
            "<p>The ends of the rows are those of bins that can be told from noise, never the "
            "least and the greatest value of the data.</p>" + table(header, rows),
        )

    @property
    def _tests(self) -> str:
        """Returns the scores of models trained on the rows; empty if there are none."""
        if not self.tested:
            return ""
        lines = "".join(f"<li><code>{text(line)}</code></li>" for line in self.tested)
        return section(
            "Trained on these rows",
            "<p>A model of a column was trained on synthetic rows. Its right answers on the "
            "private rows were counted under a charge of their own.</p>"
            f"<ul>{lines}</ul>",
        )

    @property
    def _public(self) -> str:
        """Returns the exact comparisons with public tables; empty if there are none."""
        return "".join(
            section(f"Beside the public table {each.table}", compared_html(each))
            for each in self.compared
        )

    @property
    def _lost(self) -> str:
        sentences = [*self._unmeasured, *self._rare]
        base = self.released.base
        bins = []
        for axis in base.schema.axes[: base.counted]:
            if axis.starts is not None:
                bins.append(f"{axis.name} ({axis.bins})")
        if bins:
            sentences.append(f"Inside bins, values are spread smoothly: {', '.join(bins)}.")
        if base.schedule.neighbours:
            sentences.append(
                "In pairs, neighbouring values of ordered columns are counted together."
            )
        if self.left_out:
            sentences.append(f"Left out: {', '.join(self.left_out)}.")
            sentences.append("Of a text, frequent values are kept if texts= names a placeholder.")
        sentences += self.lost
        if base.schema.plan.unit is not None and not self.lost:
            most = base.schema.plan.most
            rows = "row" if most == 1 else "rows"
            sentences.append(f"Of a unit with more than {most:,} {rows}, each row counts less.")
        listed = "".join(f"<li>{text(line)}</li>" for line in sentences)
        return f"<ul>{listed}</ul>{_listed(self.quality.missed)}"

    @property
    def _unmeasured(self) -> list[str]:
        """Returns sentences on what follows from pairs that were not measured."""
        missed = self.quality.unmeasured
        if not missed:
            return []
        words = (
            f"{missed} pairs of columns were not measured together: the rows take them as "
            "independent, given the columns between them. Combinations of three columns or "
            "more follow from the pairs."
        )
        return [words]

    @property
    def _least(self) -> str:
        """Returns a sentence on the number of rows below which a group cannot be told from
        noise.
        """
        base = self.released.base
        return f"{round(base.schedule.faint * base.sigma[0]):,}"

    @property
    def _rare(self) -> list[str]:
        """Returns sentences on rare values and tails that are not preserved."""
        sentences, rare = [], []
        for name, rest, cells in self.quality.merged:
            if rest:
                rare.append(f"{name} {rest:,}/{cells:,}")
        if rare:
            sentences.append(
                f"Values that fewer than about {self._least} rows have are too rare to be told "
                f"from noise: {', '.join(rare)}. They occur about as often as their noisy counts "
                "say, whatever the other columns are."
            )
        for each in self.quality.ranges:
            if each.is_cut:
                low, high = each.rows
                sentences.append(
                    f"{each.column}: no value is below {low} or above {high}. The tails are cut "
                    "where no bin can be told from noise."
                )
        return sentences

    @property
    def _survival(self) -> str:
        """Returns how a reader finds out whether the rows can answer a question."""
        lines = [
            "Are its columns together? A pair without a frame below was not measured.",
            f"Is its group large? Fewer than about {self._least} rows cannot be told from noise.",
            "How far off is it? Every number has an interval in",
            "If much depends on it, ask the private table once, at a cost:",
        ]
        codes = ["", "", "model.query(...)", "sfumato query"]
        items = []
        for line, code in zip(lines, codes, strict=True):
            shown = f" <code>{code}</code>" if code else ""
            items.append(f"<li>{text(line)}{shown}</li>")
        return f"<ol>{''.join(items)}</ol>"

    @property
    def _map(self) -> str:
        """Returns the associations as an SVG; measured pairs have a frame."""
        base = self.released.base
        names = base.schema.names
        measured = {each.columns for each in self.released.pairs}
        left, size = max(150, _LETTER * max(map(len, names))), _CELL * len(names)
        elements = []
        for row, name in enumerate(names):
            top = row * _CELL
            elements.append(f'<text x="{left - 6}" y="{top + 15}" class="n">{text(name)}</text>')
            for column in range(row):
                value = float(self.quality.associations[row, column])
                frame = ' class="m"' if (column, row) in measured else ""
                title = f"{names[column]} x {name}: {value:.2f}"
                elements.append(
                    f'<rect x="{left + column * _CELL}" y="{top}" width="20" height="20" '
                    f'fill="{_shade(value)}"{frame}><title>{text(title)}</title></rect>'
                )
            if row + 1 < len(names):
                at = f"{left + top + 14} {size + 6}"
                below = f'<text transform="translate({at}) rotate(-90)" class="n">'
                elements.append(f"{below}{text(name)}</text>")
        picture = "".join(elements)
        return (
            "<p>Association in the rows (Cramer's V): the darker, the more. A frame marks pairs "
            "that were measured.</p>"
            f'<svg viewBox="0 0 {left + size} {size + left}" '
            f'style="min-width:{left + size}px;max-width:{left + size}px">'
            f"{picture}</svg>"
        )

    @property
    def _columns(self) -> str:
        """Returns a bar chart, with noise bands, for each of the first columns."""
        base = self.released.base
        own = len(base.schema.axes[: base.counted])
        parts = [_fits(self.quality.singles)]
        parts += [column_chart(base, place) for place in range(min(own, _PICTURES))]
        return "".join(parts)

    @property
    def _pairs(self) -> str:
        if not self.quality.pairs:
            return "<p>None: the cost buys the single columns alone.</p>"
        return _fits(self.quality.pairs)

    @property
    def _guarantee(self) -> str:
        return (
            f"<p>{text(self.protected)} Cost: {text(str(self.cost))}. Whatever is done with the "
            "rows, and whatever else is known, what can be learnt from them about one unit is "
            "bounded by this cost; it adds to what other answers about the same data cost.</p>"
            "<p>A number that is computed from the rows alone has no error bar. "
            "<code>model.query</code> gives intervals, and <code>model.samples</code> copies that "
            "differ as the noise makes them differ.</p>"
        )


def _fits(fits: Sequence[Fit]) -> str:
    """Returns a table of how well rows fit marginals, the worst first."""
    worst = sorted(fits, key=lambda fit: fit.noise - fit.distance)[:LISTED]
    rows = []
    for fit in worst:
        rows.append([" x ".join(fit.columns), f"{fit.distance:.3f}", f"{fit.noise:.3f}"])
    return table(["columns", "distance of rows from the noisy counts", "of noise alone"], rows)


def _short(cost: Cost) -> str:
    """Formats the cost in few digits; the full cost is further down the page."""
    if cost.epsilon == "unbounded":
        return f"rho {float(cost.rho):.3g}"
    return f"epsilon {float(cost.epsilon):.3g}"


def _ways(ways: Sequence[Way]) -> str:
    """Returns a table of the distances of one, two and three columns."""
    rows = []
    for way in ways:
        off = f"{way.off:.2%} of all rows" if way.off else HIDDEN
        distances = f"{way.distance:.3f}", f"{way.noise:.3f}"
        rows.append([f"{way.columns}", f"{way.marginals}", *distances, off])
    header = [
        "columns together",
        "marginals",
        "mean distance",
        "of noise alone",
        "a cell is off by",
    ]
    return table(header, rows)


def _listed(pairs: Sequence[tuple[str, str]]) -> str:
    """Returns the names of pairs that were not measured."""
    if not pairs:
        return ""
    names = [" x ".join(pair) for pair in pairs[:_NAMED]]
    if len(pairs) > _NAMED:
        names.append("...")
    words = text(", ".join(names))
    return f"<details><summary>Pairs that were not measured</summary><code>{words}</code></details>"


def _verdict(fit: Fit) -> str:
    """Describes the typical error of a cell, as a share of all rows."""
    if not fit.off:
        return HIDDEN
    return f"{fit.off:.2%} of all rows"


def _shade(value: float) -> str:
    """Returns a colour from nearly white (0) to blue (1)."""
    light = round(95 - 55 * min(value, 1.0))
    return f"hsl(210 50% {light}%)"
