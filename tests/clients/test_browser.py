# SPDX-License-Identifier: Apache-2.0
"""The client in a browser, headless, on a page of this machine: the bytes that Node gives."""

import functools
import json
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.clients.asking import answering
from tests.clients.contract import asking, small
from tests.contracts.require import program
from tools.telemetry_conformance import Form, opening
from tools.telemetry_vectors import START

HERE = Path(__file__).parent
PAGE = """<!doctype html><body><pre id="found">nothing</pre><script type="module">
import { Client, MemoryStore } from "/clients/typescript/client.js";
const given = GIVEN;
const secret = Uint8Array.from(given.secret.match(/../g), (two) => parseInt(two, 16));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
let now = given.start - 1;
const store = new MemoryStore();
const client = await Client.open({ ...given, secret, store, clock: () => now });
const found = [await client.report("a")];
now += 1;
found.push(hex(await client.report("a")));
document.getElementById("found").textContent = JSON.stringify(found);
</script>"""


def in_browser(given: Form) -> str:
    """What the page shows."""
    page = PAGE.replace("GIVEN", json.dumps(given | {"start": START}))

    class Door(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/page":
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    browser = program("chromium")
    files = functools.partial(Door, directory=HERE.parents[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
        address = f"http://127.0.0.1:{door.server_port}/page"
        done = subprocess.run(
            [browser, *options, "--dump-dom", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
            timeout=60,
        )
        door.shutdown()
    return done.stdout.split('<pre id="found">')[1].split("</pre>")[0]


@pytest.mark.long
def test_a_browser_sends_the_bytes_that_node_sends() -> None:
    given = opening(small(memory=1))
    turns = [{"seconds": START + second, "value": "a"} for second in (-1, 0)]
    with answering([program("node"), str(HERE / "run.mjs")]) as ask:
        (due,) = ask([asking(given, turns)])
    assert json.loads(in_browser(given)) == due["found"]
