# SPDX-License-Identifier: Apache-2.0
"""``sfumato shuffle``: a proxy between devices and a collector that mixes sealed reports."""

import time
import urllib.request
from threading import Event, Thread

import click

from sfumato.cli.language import say
from sfumato.cli.web_server import config, require_server, serve
from sfumato.collector import Collector, Folder, SealedIntake, Shuffler
from sfumato.collector.shuffler import Sender
from sfumato.config.collector import read_door

# Seconds between two looks for a complete batch, and until a collector counts as away.
_PAUSE, _PATIENCE = 10.0, 60.0


@click.command("shuffle")
@config
def command(config: str) -> None:
    """Receive sealed reports, and forward them to a collector in random order.

    A batch has at least min_batch reports of its task. Stop it with Ctrl-C: what waits is on disk.
    """
    require_server()
    door = read_door(config, "shuffler")
    send = _sender(door.form["collector"])
    with Folder(door.place, holds=True) as folder:
        tasks = [each.task for each in door.tasks]
        shuffler = Shuffler(folder, tasks, send)
        app = Collector(SealedIntake(each, folder, time.time, apart=False) for each in door.tasks)
        say(f"shuffling {', '.join(app.tasks)} at {door}, for {door.form['collector']}")
        ended = Event()
        forwarding = Thread(target=_forward, args=(shuffler, ended), daemon=True)
        forwarding.start()
        try:
            serve(app, door.host, door.port)
        finally:
            ended.set()
            forwarding.join(_PATIENCE)
    say("stopped; everything that waits is stored")


def _forward(shuffler: Shuffler, ended: Event) -> None:
    """Forwards complete batches until the command ends."""
    while not ended.is_set():
        try:
            shuffler.turn()
        except OSError as error:
            say(f"the folder failed ({error.strerror}); trying again", err=True)
        ended.wait(_PAUSE)


def _sender(address: str) -> Sender:
    """Returns a function that posts batches of reports to a collector."""
    root = address.rstrip("/")

    def send(task: str, reports: bytes) -> bool:
        # its scheme is http or https: see DOORS
        place = f"{root}/v1/tasks/{task}/reports"
        request = urllib.request.Request(place, reports, method="POST")  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
                return bool(answer.status == 202)
        except OSError:
            return False

    return send
