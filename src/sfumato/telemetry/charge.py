# SPDX-License-Identifier: Apache-2.0
"""Charges a telemetry task to the account of its dataset before it is signed.

The unit is the device. The charge is its whole life: all epochs or, without memory, all reports.
Reports and estimates then cost no budget, and telemetry and queries about the same people spend
from one account.
"""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.errors import MissingDeclaration
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.event import Event
from sfumato.privacy.unit import Relation
from sfumato.query.curator import Curator
from sfumato.query.session import Session
from sfumato.query.statistic import NO_PLAN, NoPlan
from sfumato.telemetry.keys import PrivateKey, private_key
from sfumato.telemetry.signing import SignedTask, signed_task
from sfumato.telemetry.task import ReportTask


@dataclass(frozen=True, slots=True)
class DeviceLife:
    """The session's task that charges all reports of a device's life; it reads no data."""

    task: ReportTask
    kind: ClassVar[str] = "telemetry"
    cells: ClassVar[tuple[int, ...]] = ()

    @property
    def line(self) -> str:
        """A line of text: the id of the task and its epochs."""
        return f"telemetry task {self.task.id}, {self.task.epochs:,} draws a device"

    @property
    def form(self) -> str:
        """The canonical JSON of the telemetry task."""
        return self.task.to_bytes().decode()

    @property
    def event(self) -> Event:
        """The privacy event of all reports in a device's life."""
        return self.task.life

    @property
    def size(self) -> int:
        """The number of bytes of the task."""
        return len(self.task.to_bytes())

    def ready(self, declarations: Dataset) -> NoPlan:
        """Returns an empty plan (MissingDeclaration unless neighbours replace one unit)."""
        if declarations.relation is not Relation.REPLACE_ONE:
            raise MissingDeclaration(
                "Telemetry of a dataset whose neighbours add or remove a unit: a report shows "
                "that there is a device, and hides only its value.",
                allowed="a dataset with relation=sf.ReplaceOne",
                remedy='sf.connect({}, dataset="phones", relation=sf.ReplaceOne, ...)',
            )
        return NO_PLAN

    def run(self, curator: Curator) -> bytes:
        """Returns the bytes of the task, which are stored with its charge."""
        return self.task.to_bytes()


def sign(
    session: Session,
    task: ReportTask,
    key: PrivateKey,
    *,
    signed_at: int | None = None,
) -> SignedTask:
    """Charges the privacy loss of a device's whole life to the ledger, then signs the task; signing
    it again costs no budget.

    ``signed_at`` is the present moment, unless it is stated for made-up devices.

    Guarantees:
        nothing is signed before its life is charged

    Raises:
        MissingDeclaration: the neighbours of the dataset add or remove a unit; nothing is charged.
        BudgetExceeded, AccountFrozen: the account cannot pay; nothing was charged or signed.
        WrongUse: the key is no private key of P-256.

    >>> import sfumato as sf, tempfile
    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["a"], epsilon="0.5", start=0, periods=4)
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({}, dataset="phones", relation=sf.ReplaceOne, budget=sf.Budget(3),
    ...                 ledger=folder.name + "/ledger.db") as session:
    ...     signed = sign(session, task, ec.generate_private_key(ec.SECP256R1()))
    ...     session.budget.spent
    '2'
    >>> folder.cleanup()
    """
    # a key that cannot sign is found out before the charge
    secret = private_key(key)
    session.ask(DeviceLife(task))
    return signed_task(task, secret, signed_at=signed_at)
