# SPDX-License-Identifier: Apache-2.0
"""What a file declares to be run by name: synopses, censuses, models, synthetic rows, mining."""

import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pyarrow as pa

from sfumato.config.census import read_census
from sfumato.config.mining import read_mining
from sfumato.config.model import read_model
from sfumato.config.released import Form, Result, Run
from sfumato.config.synopsis import read_synopsis
from sfumato.config.synthetic import read_synthetic
from sfumato.engines.stop import Stop
from sfumato.errors import Cancelled
from sfumato.learning.fit import fit as fit_model
from sfumato.learning.fit import preview as preview_model
from sfumato.mining.mine import mine
from sfumato.mining.mine import preview as preview_mining
from sfumato.query.cost import Cost
from sfumato.query.session import Session
from sfumato.synopsis.geography.census import measure_census
from sfumato.synopsis.measure import cost_of_strategy, measured
from sfumato.synthetic.fit import fit as fit_rows
from sfumato.synthetic.fit import preview as preview_rows

_NO_COST: Mapping[str, str | None] = {}


class SynopsisRun:
    """A synopsis: its JSON is what ``sfumato synopsis answer`` reads."""

    def __init__(self, path: str, name: str, session: Session) -> None:
        declared = read_synopsis(path, name)
        self._strategy = declared.strategy
        self._planned = declared.planned(session.dataset, _NO_COST)

    def preview(self, session: Session) -> tuple[Cost, str]:
        """The cost, and the strategies with their errors."""
        return cost_of_strategy(session, self._planned, self._strategy), repr(self._planned)

    def measure(self, session: Session, _stop: Stop | None) -> Result:
        """Measures it."""
        synopsis = measured(session, self._planned, self._strategy)
        stored = synopsis.stored
        return Result(synopsis.to_json().encode(), (stored.charge,), stored.recalled)


class CensusRun:
    """A census: all its tables in long form, as an Arrow stream."""

    def __init__(self, path: str, name: str, session: Session) -> None:
        self._planned = read_census(path, name).planned(session.dataset, _NO_COST)

    def preview(self, session: Session) -> tuple[Cost, str]:
        """The cost, and the levels with their errors."""
        task = self._planned.of(self._planned.named(None))
        return session.price(task), repr(self._planned)

    def measure(self, session: Session, _stop: Stop | None) -> Result:
        """Measures it, and estimates its tables."""
        census = measure_census(session, self._planned)
        table, sink = census.to_arrow(), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        body = bytes(sink.getvalue().to_pybytes())
        return Result(body, (census.stored.charge,), census.stored.recalled, Form.ARROW)


class ModelRun:
    """A model: the JSON that ``sf.learning.load`` reads. A stop takes effect at a checkpoint."""

    def __init__(self, path: str, name: str, _session: Session) -> None:
        self._declared = read_model(path, name)

    def preview(self, session: Session) -> tuple[Cost, str]:
        """The cost, and the noise of each release."""
        declared = self._declared
        shown = preview_model(session, declared.recipe, declared.data, **declared.asked(_NO_COST))
        return shown.cost, repr(shown)

    def measure(self, session: Session, stop: Stop | None) -> Result:
        """Fits it, or goes on at its last checkpoint."""

        def progress(place: int, places: int) -> None:
            if stop is not None and stop.is_stopped and place < places:
                raise Cancelled(paid=True)

        declared = self._declared
        model = fit_model(
            session,
            declared.recipe,
            declared.data,
            progress=progress,
            **declared.asked(_NO_COST),
        )
        with tempfile.TemporaryDirectory(prefix="sfumato-model-") as folder:
            path = Path(folder) / "model.json"
            model.save(path)
            return Result(path.read_bytes(), (model.charge,))


class SyntheticRun:
    """Synthetic rows: a zip of the Parquet and CSV files that ``save`` writes."""

    def __init__(self, path: str, name: str, _session: Session) -> None:
        self._declared = read_synthetic(path, [name], _NO_COST)

    def preview(self, session: Session) -> tuple[Cost, str]:
        """The cost, and what is measured."""
        shown = preview_rows(session, self._declared.tables, **self._declared.arguments)
        return shown.cost, repr(shown)

    def measure(self, session: Session, _stop: Stop | None) -> Result:
        """Measures the tables, and draws as many rows as they have by the noisy count."""
        model = fit_rows(session, self._declared.tables, **self._declared.arguments)
        file = BytesIO()
        with (
            tempfile.TemporaryDirectory(prefix="sfumato-rows-") as folder,
            zipfile.ZipFile(file, "w") as archive,
        ):
            model.save(folder)
            for path in sorted(Path(folder).iterdir()):
                # without a time: the same rows are the same bytes
                entry = zipfile.ZipInfo(path.name)
                entry.external_attr = 0o600 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
        return Result(file.getvalue(), (model.charge_id,), form=Form.ZIP)


class MiningRun:
    """Words, sets of items or sequences: the rows of the table, as ``sfumato mine`` prints them."""

    def __init__(self, path: str, name: str, _session: Session) -> None:
        self._declared = read_mining(path, name)

    def preview(self, session: Session) -> tuple[Cost, str]:
        """The cost, and the noise."""
        declared = self._declared
        shown = preview_mining(session, declared.recipe, declared.data, **declared.cost(_NO_COST))
        return shown.cost, repr(shown)

    def measure(self, session: Session, _stop: Stop | None) -> Result:
        """Asks it."""
        declared = self._declared
        mined = mine(session, declared.recipe, declared.data, **declared.cost(_NO_COST))
        facts = {"charge": mined.charge, "cost": mined.cost.to_json(), "notes": [*mined.notes]}
        body = json.dumps({**facts, "rows": [*mined.to_dicts()]}, default=str).encode()
        return Result(body, (mined.charge,), mined.recalled)


KINDS: Mapping[str, Callable[[str, str, Session], Run]] = {
    "census": CensusRun,
    "mining": MiningRun,
    "models": ModelRun,
    "synopses": SynopsisRun,
    "synthetic": SyntheticRun,
}
