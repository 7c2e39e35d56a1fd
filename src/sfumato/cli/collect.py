# SPDX-License-Identifier: Apache-2.0
"""``sfumato collect``: receives reports of devices until it is stopped."""

import time
from contextlib import closing

import click

from sfumato.cli.language import say
from sfumato.cli.web_server import config, require_server, serve
from sfumato.collector import Collector, intake_of, open_store
from sfumato.config.collector import read_door


@click.command("collect")
@config
def command(config: str) -> None:
    """Receive reports of devices over HTTP, and keep them in a folder or in PostgreSQL.

    Neither the address of a device nor the time of a report is kept. Stop it with Ctrl-C: what was
    acknowledged is on disk.
    """
    require_server()
    door = read_door(config, "collector")
    with closing(open_store(door.place)) as store:
        app = Collector([intake_of(each, store, time.time) for each in door.tasks])
        say(f"collecting {', '.join(app.tasks)} at {door}")
        serve(app, door.host, door.port)
    say("stopped; everything that was acknowledged is stored")
