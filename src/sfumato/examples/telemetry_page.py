# SPDX-License-Identifier: Apache-2.0
"""The page of ``sfumato demo telemetry``: one HTML file that needs no other."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.examples.made_up_devices import DEVICES, HIJACKER, SENT, Question
from sfumato.examples.telemetry_findings import Found
from sfumato.examples.telemetry_processes import Sent
from sfumato.show import page as show
from sfumato.show.bars import bar_chart
from sfumato.show.render import html_table
from sfumato.telemetry import Aggregator

_MADE_UP = (
    "The true values are made up: nobody here exists, so they may be shown. Of real devices nobody "
    "holds them."
)


@dataclass(frozen=True, slots=True)
class Story:
    """The results of a run of ``sfumato demo telemetry``, as the HTML page shows them."""

    asked: Sequence[Question]
    sent: Sequence[Sent]
    sums: Mapping[str, Mapping[int, Aggregator]]
    found: Found
    sealed: str
    account: str
    seconds: float


def page(story: Story) -> str:
    """Returns the telemetry demo's page as HTML."""
    findings = story.found
    sections = [
        _header(story),
        _section(
            "Which emoji are used",
            "Each device changed its answer at random before it sent it. The first emoji of the "
            "list, with 95% intervals.",
            bar_chart("Emoji used last", "devices", findings.emoji_bars()).svg,
        ),
        _section(
            "New words that nobody listed",
            "RAPPOR sends bits of a Bloom filter, each changed at random. Candidates are tested "
            "afterwards; most of those here are typed by nobody.",
            bar_chart("Candidates", "devices", findings.word_bars()).svg,
            f"found: {', '.join(findings.words)}, of {len(findings.texts.values)} candidates",
        ),
        _section(
            "How often the keyboard corrects",
            "The mean of each day. A device sends one bit, or a place near its number.",
            bar_chart("Corrections a day", "corrections of a device", findings.day_bars()).svg,
        ),
        _section(
            "A home page that malware replaced",
            "All intervals of a week hold together with probability 0.999. This week the interval "
            "lies above that of the week before: the change is noticed in its week.",
            bar_chart(f"Home page {HIJACKER}", "devices", findings.week_bars()).svg,
        ),
        _sealed(story),
        _promises(story),
    ]
    return show.page("sfumato: a million devices that nobody can read", "".join(sections))


def _header(story: Story) -> str:
    """Returns the title and the tiles with the main numbers."""
    # a sealed question has one period and few devices
    real = sum(one.reports for one in story.sent)
    numbers = [
        (f"{(len(story.asked) - 1) * DEVICES:,}", "reports of the present period"),
        (f"{real:,}", "sent by real clients, over HTTP"),
        ("0", "true values held by anybody"),
        (f"{story.seconds:.0f} s", "for all of it, on this machine"),
    ]
    return (
        "<header><h1>A million devices that nobody can read</h1>"
        f"<p>{_MADE_UP} Collector, shuffler, aggregator and clients are the real programs.</p>"
        f"</header>{show.tiles(numbers)}{_clients(story)}"
    )


def _clients(story: Story) -> str:
    """Returns the section on how many reports each client sent."""
    simulated = (len(story.asked) - 1) * (DEVICES - 2 * SENT)
    body = []
    for one in story.sent:
        rate = f"{one.reports / one.seconds:,.0f}"
        body.append([f"{one.client} client", f"{one.reports:,}", rate])
    body.append(["simulated: drawn from the same law", f"{simulated:,}", ""])
    table = html_table(["devices", "reports", "a second"], body)
    return _section(
        "Who sent the reports",
        "Each report is of a device with a secret and a store of its own. Clients send in batches "
        "of 1,000; the collector acknowledges what is on disk.",
        table,
        "Days and weeks before the present one are simulated too.",
    )


def _section(title: str, text: str, inside: str, below: str = "") -> str:
    """Returns a section: a title, a paragraph, a chart or table, and a line below it."""
    closing = f'<p class="cost">{html.escape(below)}</p>' if below else ""
    return (
        f"<section><h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>{inside}{closing}"
        "</section>"
    )


def _sealed(story: Story) -> str:
    """Returns the section of the sealed question."""
    return _section(
        "Sealed and shuffled: is dark mode on?",
        "These reports are sealed to the aggregator. A shuffler that cannot read them forwards "
        "them in random order to a collector that cannot read them either; the aggregator opens "
        "them and cannot tell who sent which. Of the devices 60% say yes.",
        f'<pre class="wide">{html.escape(story.sealed.strip())}</pre>',
    )


def _promises(story: Story) -> str:
    """Returns the section of what each question costs a device."""
    body = []
    for question in story.asked:
        task = question.task
        first, life = float(task.first_epsilon), float(task.life_epsilon)
        body.append([task.question, task.oracle.kind, f"{first:.3g}", f"{life:.3g}"])
    table = html_table(["question", "oracle", "epsilon, first report", "for ever"], body)
    return _section(
        "What it costs a device",
        "The whole life of a device is charged to one account before a task is signed. Estimates "
        "cost nothing more.",
        f'{table}<pre class="wide">{html.escape(story.account)}</pre>',
    )
