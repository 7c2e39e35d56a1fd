# SPDX-License-Identifier: Apache-2.0
"""A program that answers a JSON request a line, which lives as long as a file of tests."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence

from tools.telemetry_conformance import Form


@contextlib.contextmanager
def answering(program: Sequence[str]) -> Iterator[Callable[[Sequence[Form]], list[Form]]]:
    """What asks the program; it ends with the block."""
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        written, read = process.stdin, process.stdout
        assert written is not None and read is not None

        def ask(requests: Sequence[Form]) -> list[Form]:
            found = []
            for request in requests:
                written.write(json.dumps(request) + "\n")
                written.flush()
                found.append(json.loads(read.readline()))
            return found

        yield ask
        written.close()
