# SPDX-License-Identifier: Apache-2.0
"""A study of three or more sites in one process: keys, files, a coordinator and threads."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sfumato import federated
from sfumato.federated.site import Site

NAMES = ("anne", "northgate", "riverside")
COLUMNS = """
[tables.patients]
{source}
[tables.patients.columns]
age = {{type = "integer", lower = 0, upper = {upper}}}
sex = {{type = "category", values = ["F", "M"]}}
dose = {{type = "real", lower = 0, upper = 10, step = "0.25"}}
responded = {{type = "boolean"}}
"""


def columns(source: str = "", upper: int = 99) -> str:
    """The declarations of the one table."""
    return COLUMNS.format(source=f'source = "{source}"' if source else "", upper=upper)


def rows(place: int, count: int = 60) -> pa.Table:
    """The rows of a site, which differ from site to site."""
    return pa.table(
        {
            "age": [(7 * each + 13 * place) % 100 for each in range(count)],
            "sex": ["F" if (each + place) % 3 else "M" for each in range(count)],
            "dose": [(each % 40) / 4 for each in range(count)],
            "responded": [(each * (place + 1)) % 5 < 3 for each in range(count)],
        }
    )


def write_key(folder: Path, name: str) -> None:
    """A key pair of a party as two PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / f"{name}.pem").write_bytes(private)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def write_study(
    folder: Path,
    names: tuple[str, ...] = NAMES,
    *,
    more: str = "",
    approve: str = "within limits",
    budget: str = '[budget]\nepsilon = "10"\ndelta = "1e-6"\n',
    tables: Mapping[str, pa.Table] | None = None,
) -> Path:
    """The files of a study and of its sites; returns the path of the study."""
    for name in (*names, "analyst"):
        write_key(folder, name)
    sites = "".join(f'{name} = "{name}.pub"\n' for name in names)
    study = folder / "study.toml"
    study.write_text(
        f'study = "trial"\ncoordinator = "http://127.0.0.1:{free_port()}"\n'
        f'analyst = "analyst.pub"\n{more}\n[sites]\n{sites}{columns()}'
    )
    for place, name in enumerate(names):
        table = rows(place) if tables is None else tables[name]
        parquet.write_table(table, folder / f"{name}.parquet")
        (folder / f"{name}.data.toml").write_text(
            f'dataset = "{name}"\nledger = "{name}.db"\n{budget}{columns(f"{name}.parquet")}'
        )
        (folder / f"{name}.toml").write_text(
            f'study = "study.toml"\nsite = "{name}"\nkey = "{name}.pem"\n'
            f'data = "{name}.data.toml"\napprove = "{approve}"\n'
        )
    return study


@contextmanager
def coordinating(study: Path) -> Iterator[None]:
    """A coordinator of a study in a thread."""
    declared = federated.read_study(study)
    app = federated.Coordinator(declared, study.parent / "rounds")
    port = int(declared.coordinator.rpartition(":")[2])
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=port,
            lifespan="on",
            # its own would close the handlers of this process
            log_config=None,
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def serving(study: Path, *names: str, told: list[str] | None = None) -> Iterator[dict[str, Site]]:
    """Sites of a study, each in a thread."""
    lines: list[str] = [] if told is None else told
    stop = threading.Event()
    with ExitStack() as left:
        sites = {name: left.enter_context(Site(study.parent / f"{name}.toml")) for name in names}
        threads = [
            threading.Thread(
                target=site.serve,
                args=(stop, lambda line, name=name: lines.append(f"{name}: {line}"), 1),
                daemon=True,
            )
            for name, site in sites.items()
        ]
        for thread in threads:
            thread.start()
        try:
            yield sites
        finally:
            stop.set()
            for thread in threads:
                thread.join()
