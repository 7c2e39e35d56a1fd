# SPDX-License-Identifier: Apache-2.0
"""The tables of keys in docs/cli.md, made of the keys; ``python -m tests.config.key_tables`` writes
them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.cli.init_toml import literal
from sfumato.config.census import CENSUS
from sfumato.config.collector import DOORS
from sfumato.config.limits_file import ACCOUNT
from sfumato.config.load import BUDGET, FILE
from sfumato.config.mining import MINING
from sfumato.config.model import MODEL
from sfumato.config.publication import PUBLICATION, QUESTION
from sfumato.config.section import REQUIRED, Key
from sfumato.config.stream import STREAM
from sfumato.config.synopsis import SYNOPSIS
from sfumato.config.synthetic import SYNTHETIC
from sfumato.config.table import COLUMNS, EDGE, NODE, TABLE, UNIT
from sfumato.config.telemetry import ATTRIBUTE, TELEMETRY
from sfumato.service.settings import KEYS, LIMITS, SIGN_IN, TLS
from tests.architecture.structure import ROOT

PAGE = ROOT / "docs" / "cli.md"
# defaults that are stored otherwise than they are written
WRITTEN = {"listen": "127.0.0.1:8440", "quantum": "100ms", "drain": "30s"}
SECTIONS = {
    "file": FILE,
    "budget": BUDGET,
    "table": TABLE,
    "unit": UNIT,
    "edge": EDGE,
    "node": NODE,
    "publication": PUBLICATION,
    "question": QUESTION,
    "account": ACCOUNT,
    "stream": STREAM,
    "census": CENSUS,
    "synopsis": SYNOPSIS,
    "model": MODEL,
    "mining": MINING,
    "synthetic": SYNTHETIC,
    "telemetry": TELEMETRY,
    "attribute": ATTRIBUTE,
    "collector": DOORS["collector"],
    "shuffler": DOORS["shuffler"],
    "server": tuple(replace(key, default=WRITTEN.get(key.name, key.default)) for key in KEYS),
    "tls": TLS,
    "sign_in": SIGN_IN,
    "limits": LIMITS,
}
_MARKED = re.compile(r"<!-- keys of (\w+) -->\n.*?<!-- end of keys -->", re.DOTALL)


def key_table(keys: Sequence[Key]) -> str:
    """A table of the keys of a section."""
    rows = [(key.name, key.example, key.help, default_text(key.default)) for key in keys]
    return _markdown(("Key", "Example", "What it means", "Without it"), rows)


def column_table(columns: Mapping[str, Sequence[Key]]) -> str:
    """A table of the keys of columns, with the types that have each."""
    kinds: dict[Key, list[str]] = {}
    for kind, keys in columns.items():
        for key in keys:
            kinds.setdefault(key, []).append(kind)
    rows = [
        (key.name, key.example, key.help, default_text(key.default), ", ".join(of))
        for key, of in kinds.items()
    ]
    return _markdown(("Key", "Example", "What it means", "Without it", "Types"), rows)


def default_text(default: Any) -> str:
    """What holds where a key is left out."""
    if default is REQUIRED:
        return "refused"
    if default in (None, "", (), {}, []):
        return ""
    return f"`{literal(getattr(default, 'value', default))}`"


def with_tables(page: str) -> str:
    """A page with its tables of keys made anew."""

    def made(marked: re.Match[str]) -> str:
        name = marked[1]
        body = column_table(COLUMNS) if name == "columns" else key_table(SECTIONS[name])
        return f"<!-- keys of {name} -->\n{body}\n<!-- end of keys -->"

    return _MARKED.sub(made, page)


def marked(page: str) -> list[str]:
    """The sections of which a page has a table."""
    return _MARKED.findall(page)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head)]
    lines += [(f"`{name}`", f"`{example}`", *rest) for name, example, *rest in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), encoding="utf-8")
