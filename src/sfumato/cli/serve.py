# SPDX-License-Identifier: Apache-2.0
"""``sfumato serve``: a service for a few analysts over HTTP, until it is stopped."""

import logging
import sys

import click

from sfumato.cli.language import say
from sfumato.cli.service_options import config
from sfumato.service.opening import Service
from sfumato.service.served import check as check_files
from sfumato.service.settings import read_settings
from sfumato.web.server import serve


@click.command("serve")
@config
@click.option("--check", is_flag=True, help="Only read the files; open nothing.")
def command(config: str, *, check: bool) -> None:
    """Answer questions of people with accounts over HTTP: docs/service.md.

    SIGTERM and Ctrl-C end it: questions under way have time to end, the rest are stopped.
    """
    settings = read_settings(config)
    if check:
        names = ", ".join(check_files(settings.datasets))
        say(f"would serve {names} at {settings.address}")
        return
    # names, kinds of events and ids only
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s"
    )
    with Service(settings) as service:
        names = ", ".join(served.name for served in service.datasets)

        def ready() -> None:
            # before it is said that it serves: whoever waits for that may add people at once
            secret = "" if service.people.everybody() else service.people.invite_first()
            say(f"serving {names} at {settings.address}")
            if secret:
                say(f"first start: {settings.address}/setup/{secret}   (once, within an hour)")

        serve(service, ready)
    say("stopped")
