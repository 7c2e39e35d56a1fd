# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo federation``: three hospitals, one study, no pooled data, as five processes.

The patients are made up, so the pooled answer may be shown beside. One hospital is killed in the
middle of a training and comes back.
"""

import html
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path

import click
import pyarrow.compute as pc
import pyarrow.parquet as parquet
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from rich.console import Console

from sfumato import federated
from sfumato.cli.main import main
from sfumato.cli.options import require_spared, write_file
from sfumato.config.load import load
from sfumato.errors import Failed, StudyFailed
from sfumato.examples.hospitals_data import DRUGS, HOSPITALS, OLDEST, STRONGEST, write_hospitals
from sfumato.examples.hospitals_study import STUDY
from sfumato.examples.telemetry_processes import free_port
from sfumato.federated.encryption import RunKey
from sfumato.learning.additive import Additive
from sfumato.learning.model import Model
from sfumato.query.answer import Answer
from sfumato.show import page as show
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import html_table, text_table

_RHO, _MODEL_RHO = "0.02", "0.03"
QUESTION = STUDY[0].sql
ROWS = "SELECT drug, dose, response FROM prescriptions"
_MODEL = Additive(steps=60, checkpoints=10)
_SITES = tuple(name.lower().replace(". ", "-") for name in HOSPITALS)
# On Linux all processes are forks of one that has imported the package: importing takes longest.
if sys.platform == "linux":
    _PROCESSES = multiprocessing.get_context("forkserver")
else:
    _PROCESSES = multiprocessing.get_context("spawn")
_PRELOADED = ["sfumato.cli.site", "sfumato.cli.study", "uvicorn"]
# Seconds until a process counts as stuck.
_PATIENCE = 60.0
# The steps of the training that are done before a site is killed.
_STEPS_BEFORE = 20
_TABLES = """
[tables.patients]
{patients}
unit = {{column = "patient_id", max_rows_total = 1}}
columns.age = {{type = "integer", lower = 0, upper = {oldest}}}
[tables.visits]
{visits}
unit = {{column = "patient_id", max_rows = 8, max_groups = 3, max_rows_total = 12}}
[tables.prescriptions]
{prescriptions}
unit = {{column = "visit_id", via = "visits.patient_id", max_rows = 4, max_groups = 3, max_rows_total = 8}}
columns.drug = {{type = "category", values = [{drugs}]}}
columns.dose = {{type = "real", lower = 0, upper = {strongest}, step = "0.25"}}
columns.response = {{type = "boolean"}}
"""


@dataclass(frozen=True, slots=True)
class Story:
    """The results of the demo, as the page shows them."""

    joint: Answer
    pooled: Answer
    model: str
    broke_off: str
    ledgers: tuple[tuple[str, str], ...]
    sent: str
    seconds: float


@click.command("federation")
@click.option(
    "--report", default="demo-federation.html", show_default=True, help="Where to write the page."
)
def command(report: str) -> None:
    """Ask three made-up hospitals one question, without pooled data, and fit one model.

    Coordinator and hospitals are processes of 127.0.0.1. One hospital is killed in mid-run and
    comes back. It needs the extra sfumato[collector].
    """
    require_spared(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-federation-") as folder:
        story = tell(console, Path(folder))
    write_file(report, page(story).encode())
    console.print(f"\n[bold]Written:[/bold] {report}")


def tell(console: Console, folder: Path) -> Story:
    """Runs the demo and prints it; returns the results for the page."""
    begun = time.monotonic()
    study = write_study(folder)
    console.print(f"[bold]Three hospitals[/bold], a coordinator and an analyst in {folder.name}")
    with ExitStack() as left:
        left.enter_context(process(folder, "study", "serve", study.name, "--folder", "rounds"))
        sites = {name: left.enter_context(_site(folder, name)) for name in _SITES}
        opened = left.enter_context(federated.open(study, key=folder / "analyst.pem"))
        joint = opened.query(QUESTION, rho=_RHO, wait_s=_PATIENCE)
        console.print(f"\n[bold]{STUDY[0].title}[/bold]\n{joint!r}")
        with load(folder / "pooled.toml") as session:
            pooled = session.query(QUESTION, rho=_RHO)
        console.print(f"\n[bold]The same of the pooled tables[/bold]\n{pooled!r}")
        model, broke_off = _killed_fit(console, folder, opened, sites[_SITES[0]])
        console.print(f"\n{model}")
    ledgers = tuple(_ledger(folder, name) for name in _SITES)
    console.print(
        text_table(["ledger", "verified, and what is spent"], [list(each) for each in ledgers])
    )
    sent = _sent(folder)
    console.print(sent)
    return Story(joint, pooled, model, broke_off, ledgers, sent, time.monotonic() - begun)


def write_study(folder: Path) -> Path:
    """Writes keys, split tables and all files; returns the path of the study."""
    for name in (*_SITES, "analyst"):
        key = ec.generate_private_key(ec.SECP256R1())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / f"{name}.pem").write_bytes(secret)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pub").write_bytes(public)
    paths = write_hospitals(folder)
    sites = "".join(f'{name} = "{name}.pub"\n' for name in _SITES)
    study = folder / "study.toml"
    study.write_text(
        f'study = "metformin-2026"\ncoordinator = "http://127.0.0.1:{free_port()}"\n'
        f'analyst = "analyst.pub"\n[sites]\n{sites}{_declared({})}'
    )
    _write_data(folder, "pooled", paths)
    for name, hospital in zip(_SITES, HOSPITALS, strict=True):
        _write_data(folder, name, _split(folder, paths, name, hospital))
        (folder / f"{name}.site.toml").write_text(
            f'study = "study.toml"\nsite = "{name}"\nkey = "{name}.pem"\n'
            f'data = "{name}.toml"\napprove = "within limits"\n'
        )
    return study


def _split(folder: Path, paths: Mapping[str, Path], name: str, hospital: str) -> dict[str, Path]:
    """The tables of one hospital."""
    patients = parquet.read_table(paths["patients"])
    patients = patients.filter(pc.equal(patients["hospital"], hospital))
    visits = parquet.read_table(paths["visits"])
    visits = visits.filter(pc.is_in(visits["patient_id"], patients["patient_id"].combine_chunks()))
    given = parquet.read_table(paths["prescriptions"])
    given = given.filter(pc.is_in(given["visit_id"], visits["visit_id"].combine_chunks()))
    found = {}
    for table, rows in (("patients", patients), ("visits", visits), ("prescriptions", given)):
        found[table] = folder / f"{name}.{table}.parquet"
        parquet.write_table(rows, found[table])
    return found


def _write_data(folder: Path, name: str, paths: Mapping[str, Path]) -> None:
    """The sfumato.toml of a hospital, or of all."""
    (folder / f"{name}.toml").write_text(
        f'dataset = "{name}"\nledger = "{name}.db"\n'
        f'[budget]\nepsilon = "3"\ndelta = "1e-6"\n{_declared(paths)}'
    )


def _declared(paths: Mapping[str, Path]) -> str:
    """The tables of a file; without paths, those of the study."""
    sources = {
        name: f'source = "{paths[name].name}"' if paths else ""
        for name in ("patients", "visits", "prescriptions")
    }
    drugs = ", ".join(f'"{drug.name}"' for drug in DRUGS)
    return _TABLES.format(oldest=OLDEST, strongest=STRONGEST, drugs=drugs, **sources)


@contextmanager
def process(folder: Path, *arguments: str) -> Iterator[BaseProcess]:
    """Runs a command of sfumato in a folder while the block runs."""
    _PROCESSES.set_forkserver_preload(_PRELOADED)
    process = _PROCESSES.Process(target=_run, args=(folder, arguments))
    process.start()
    try:
        yield process
    finally:
        # not SIGINT, which is ignored in what a script runs in the background
        process.terminate()
        process.join(_PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()


def _run(folder: Path, arguments: tuple[str, ...]) -> None:
    """A command of sfumato as a process: it writes to processes.log in its folder."""
    os.chdir(folder)
    with Path("processes.log").open("ab") as said:
        for output in (sys.stdout, sys.stderr):
            os.dup2(said.fileno(), output.fileno())
    sys.argv = ["sfumato", *arguments]
    main()


def _site(folder: Path, name: str) -> AbstractContextManager[BaseProcess]:
    return process(folder, "site", "serve", "-c", f"{name}.site.toml")


def _killed_fit(
    console: Console,
    folder: Path,
    study: federated.Study,
    site: BaseProcess,
) -> tuple[str, str]:
    """Fits a model; the first hospital is killed in mid-run and comes back."""
    before = len(_sums(folder))
    back = ExitStack()

    def replace_site() -> None:
        limit = time.monotonic() + _PATIENCE
        while len(_sums(folder)) < before + _STEPS_BEFORE and time.monotonic() < limit:
            time.sleep(0.005)
        site.kill()
        site.join()
        back.enter_context(_site(folder, _SITES[0]))

    def fit() -> Model:
        return study.fit(_MODEL, ROWS, label="response", rho=_MODEL_RHO, wait_s=_PATIENCE)

    killing = threading.Thread(target=replace_site)
    killing.start()
    with back:
        console.print(f"\n[bold]A model of the prescriptions[/bold]; {_SITES[0]} is killed")
        try:
            fit()
            broke_off = "All steps were done before."
        except StudyFailed as failure:
            broke_off = failure.problem
        console.print(f"{broke_off} The site comes back, and the run goes on, free.")
        killing.join()
        return repr(fit()), broke_off


def _sums(folder: Path) -> list[Path]:
    """The sums at the coordinator."""
    return list((folder / "rounds" / "sums").glob("*"))


def _sent(folder: Path) -> str:
    """How many bytes of shares each site has sent, and how many they are as ciphertexts."""
    sums = [path.read_bytes() for path in _sums(folder)]
    size = sum(map(len, sums))
    line = f"{len(sums)} steps; each site sent {size:,} bytes of masked shares"
    if find_spec("tenseal") is None:
        return line
    key = RunKey.new(len(_SITES))
    encrypted = sum(len(key.encrypt(total)) for total in sums)
    return f'{line}; with encryption = "bfv" they are {encrypted:,} bytes'


def _ledger(folder: Path, name: str) -> tuple[str, str]:
    """Whether a ledger verifies, and what is spent."""
    with load(folder / f"{name}.toml") as session:
        problems = session.verify().problems
        if problems:
            raise Failed(f"The ledger of {name} does not verify.")
        return name, f"no problem; {repr(session.budget).splitlines()[1].strip()}"


def page(story: Story) -> str:
    """Returns the page."""
    bars = [_bar("three hospitals, no pooled data", story.joint)]
    bars.append(_bar("one curator with all rows", story.pooled))
    rows = [list(each) for each in story.ledgers]
    body = [
        "<h1>Three hospitals, one study, no pooled data</h1>",
        "<p>The patients are made up. No row left its hospital.</p>",
        "<p>Each sent noisy sums, masked such that the sum over all three alone can be read.</p>",
        bar_chart(STUDY[0].title, "share that responded, with 95% intervals", bars).svg,
        f"<h2>A model</h2><p>{html.escape(story.model)}</p>",
        f"<p>A hospital was killed in mid-run: {html.escape(story.broke_off)} It came back.</p>",
        "<p>The lost piece was skipped everywhere, and nothing was charged twice.</p>",
        "<h2>Three ledgers</h2>",
        html_table(["hospital", "verified, and what is spent"], rows),
        f"<p>{html.escape(story.sent)}; the demo took {story.seconds:.0f} seconds.</p>",
    ]
    return show.page("Three hospitals, one study", "\n".join(body))


def _bar(title: str, answer: Answer) -> Bar:
    """A bar of the one cell of an answer, with its interval."""
    ((value,),) = answer.rows
    ((interval,),) = (line.values() for line in answer.error())
    assert isinstance(interval, dict), "the interval of the one cell"
    return Bar(
        title, "", float(str(value)), float(str(interval["low"])), float(str(interval["high"]))
    )
