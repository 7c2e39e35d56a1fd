# SPDX-License-Identifier: Apache-2.0
"""A copy of the pinned ledger, opened by the version of now, and its questions, asked again."""

import gzip
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sfumato as sf
from tests.stored import asking, parts, questions


@dataclass(frozen=True)
class Again:
    """A question that was asked again: its answer, what would be stored of it now, its charge."""

    answer: Any
    stored: asking.Stored
    before: list[Any]
    after: list[Any]


@dataclass
class World:
    """A folder with a copy of the ledger; each question is asked once.

    ``pieces`` are those that the interrupted fit went on with.
    """

    folder: Path
    block: ExitStack
    pieces: list[int] = field(default_factory=list)
    _sessions: dict[str, sf.Session] = field(default_factory=dict)
    _asked: dict[tuple[str, str], Again] = field(default_factory=dict)

    def session(self, dataset: str) -> sf.Session:
        """A session over a dataset."""
        if dataset not in self._sessions:
            opened = questions.connect(dataset, self.folder)
            self._sessions[dataset] = self.block.enter_context(opened)
        return self._sessions[dataset]

    def asked(self, dataset: str, name: str) -> Again:
        """A question, asked again the first time that it is needed."""
        if (dataset, name) not in self._asked:
            question = questions.QUESTIONS[dataset][name]
            if name == questions.INTERRUPTED:
                question = partial(question, progress=lambda place, _: self.pieces.append(place))
            session = self.session(dataset)
            before = self.taken(dataset)
            with questions.without_torch():
                answer, stored = asking.ask(question, session)
            self._asked[dataset, name] = Again(answer, stored, before, self.taken(dataset))
        return self._asked[dataset, name]

    def taken(self, dataset: str) -> list[Any]:
        """What the accounts of a dataset have spent and reserved."""
        return [balance.taken for balance in self.session(dataset).balances()]

    @cached_property
    def makers(self) -> dict[str, asking.Maker]:
        """What makes each pinned text that is not of a question."""
        return dict(parts.makers())


@contextmanager
def opened(folder: Path) -> Iterator[World]:
    """A copy of the ledger in a folder."""
    packed = questions.FOLDER / f"{questions.LEDGER}.gz"
    (folder / questions.LEDGER).write_bytes(gzip.decompress(packed.read_bytes()))
    shutil.copytree(questions.FOLDER / "states", folder / "states")
    with ExitStack() as block:
        yield World(folder, block)
