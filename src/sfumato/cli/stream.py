# SPDX-License-Identifier: Apache-2.0
"""``sfumato stream``: plan, open, advance and show a stream that the file declares."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from sfumato.cli.language import say
from sfumato.cli.options import (
    as_json,
    config,
    require_outputs,
    seconds_to_wait,
    table_or_json,
    waits,
    write_text,
)
from sfumato.cli.waiting import waiting
from sfumato.config.load import load
from sfumato.config.stream import read_stream
from sfumato.errors import WrongUse, shown
from sfumato.privacy.event import Json
from sfumato.query.left_after import left_now
from sfumato.synopsis.counts import Counts
from sfumato.synopsis.stream import Stream
from sfumato.synopsis.stream_plan import compare_limits
from sfumato.synopsis.tick_task import StreamSeries


@click.group("stream")
def command() -> None:
    """Counts that go on, tick by tick, under one charge.

    A stream is declared in the file: [streams.NAME] with table, time, horizon, and rho or epsilon.
    """


@command.command("plan")
@click.argument("name")
@config
@waits
def plan_command(name: str, config: str) -> None:
    """Compare the encoders of the stream NAME, and limits of its units; free."""
    with load(config, wait=seconds_to_wait()) as session:
        planned = read_stream(session.dataset, config, name)
        say(repr(planned))
        say(compare_limits(session.dataset, planned))
        charge = session.price(StreamSeries(planned, session.dataset)).charge
        say("\n".join(left_now(session.balances, charge)))


@command.command("open")
@click.argument("name")
@config
@waits
def open_command(name: str, config: str) -> None:
    """Open the stream NAME: all of its ticks are charged now."""
    with waiting() as engine, load(config, engine=engine, wait=seconds_to_wait()) as session:
        planned = read_stream(session.dataset, config, name)
        with Stream(session, planned) as found:
            say(repr(found))
        say(repr(session.budget))


@command.command("advance")
@click.argument("name")
@click.argument("end")
@config
@waits
@table_or_json
def advance_command(name: str, end: str, config: str, form: str) -> None:
    """Count the rows up to END in the stream NAME as a tick, and show the running totals."""
    with _opened(config, name) as found:
        _write(found.advance(_time(found, end)), form)


@command.command("show")
@click.argument("name")
@config
@waits
@click.option("--at", help="The totals at the end of this tick; by default of the last one.")
@click.option("--window", type=int, help="The counts of so many ticks.")
@click.option("--first", help="With --last: the counts from one time to another.")
@click.option("--last", help="The last time that counts.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write every tick as CSV.")
@table_or_json
def show_command(
    name: str,
    config: str,
    *,
    at: str | None,
    window: int | None,
    first: str | None,
    last: str | None,
    output: str | None,
    form: str,
) -> None:
    """Show counts of the stream NAME; free."""
    require_outputs(config, output)
    if (first is None) is not (last is None) or (first and (window or at)):
        raise WrongUse("Not one range.", allowed="--first with --last, or --window and --at")
    with _opened(config, name) as stream:
        when = None if at is None else _time(stream, at)
        if output is not None:
            write_text(_csv(stream), output)
            say(stream.plan.limits, err=True)
        if first is not None and last is not None:
            _write(stream.between(_time(stream, first), _time(stream, last)), form)
        elif window is not None:
            _write(stream.window(window, when), form)
        else:
            _write(stream.totals(when), form)


@contextmanager
def _opened(config: str, name: str) -> Iterator[Stream]:
    """Opens a stream by its name; it must be paid for already."""
    with waiting() as engine, load(config, engine=engine, wait=seconds_to_wait()) as session:
        planned = read_stream(session.dataset, config, name)
        if not session.has_series(StreamSeries(planned, session.dataset)):
            raise WrongUse(
                f"The stream {shown(name)} is not open, or another process is using it.",
                remedy=f"sfumato stream open {name}",
            )
        with Stream(session, planned) as found:
            yield found


def _time(stream: Stream, text: str) -> str | int:
    """Parses a time of a stream: a date as a string, or a whole number."""
    isnt_date = not hasattr(stream.plan.time, "format") and text.lstrip("-").isdigit()
    return int(text) if isnt_date else text


def _write(counts: Counts, form: str) -> None:
    """Writes counts to stdout."""
    if form == "json":
        rows: list[Json] = [_plain(row) for row in counts.to_dicts()]
        click.echo(as_json({"counts": rows, "limits": counts.limits}))
    else:
        say(repr(counts))


def _plain(row: Mapping[str, object]) -> dict[str, Json]:
    """A row with its values converted to JSON types."""
    plain: dict[str, Json] = {}
    for name, value in row.items():
        if value is None or isinstance(value, str | int | float):
            plain[name] = value
        else:
            plain[name] = str(value)
    return plain


def _csv(stream: Stream) -> str:
    """Every tick of a stream as CSV."""
    table = stream.to_arrow()
    lines = [",".join(table.column_names)]
    for row in table.to_pylist():
        values = ["" if value is None else str(value) for value in row.values()]
        lines.append(",".join(values))
    return "\n".join(lines) + "\n"
