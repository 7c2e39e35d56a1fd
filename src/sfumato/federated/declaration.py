# SPDX-License-Identifier: Apache-2.0
"""Reads a ``study.toml`` and a ``site.toml``. Data, never code; the hash of its bytes names a study."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.config.named_section import require_table
from sfumato.config.section import Key, only, read, table, text, whole
from sfumato.config.table import read_table
from sfumato.config.toml_file import read_toml
from sfumato.errors import InvalidConfig, SfumatoError, shown
from sfumato.federated.encryption import BFV, require_bfv
from sfumato.federated.joint import Terms
from sfumato.federated.messages import ANALYST
from sfumato.mechanisms.masks import roster_of
from sfumato.metadata.dataset import Dataset
from sfumato.telemetry.keys import public_key

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FEWEST = 3
_REMEDY = "docs/federated.md has a whole study.toml and site.toml."


def _address(value: Any) -> str:
    """Reads the address of a coordinator: https, or http on loopback."""
    parts = urlsplit(text(value))
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not safe or parts.hostname is None or parts.path.strip("/") or parts.username:
        raise only("https://host:port; http only on 127.0.0.1")
    return str(value).rstrip("/")


def _one_or_more(value: Any) -> int:
    if whole(value) < 1:
        raise only("a whole number from 1 on")
    return int(value)


ENCRYPTIONS = ("none", BFV)


def _encryption(value: Any) -> str:
    if value not in ENCRYPTIONS:
        raise only(" or ".join(map(repr, ENCRYPTIONS)))
    return str(value)


STUDY = (
    Key("study", text, '"metformin-2026"', "its name, and the analyst in each site's ledger"),
    Key("coordinator", _address, '"https://sum.example"', "who adds; http on loopback alone"),
    Key("analyst", text, '"analyst.pub"', "the public key of who may ask"),
    Key("colluders", _one_or_more, "1", "how many sites may pool what they know", 1),
    Key("overlap", _one_or_more, "1", "in how many sites a person may be", 1),
    Key("least", _one_or_more, "3", "with fewer sites no step is taken; by default all", None),
    Key("encryption", _encryption, '"bfv"', "what is around the masked shares", ENCRYPTIONS[0]),
    Key("sites", table, '{northgate = "northgate.pub"}', "the public key of each site"),
    Key("tables", table, "{patients = {columns = {}}}", "as in sfumato.toml, without source"),
)
APPROVALS = ("by hand", "within limits")


def _approval(value: Any) -> str:
    if value not in APPROVALS:
        raise only(" or ".join(map(repr, APPROVALS)))
    return str(value)


SITE = (
    Key("study", text, '"study.toml"', "the study, the same file at all sites"),
    Key("site", text, '"northgate"', "which of its sites this is"),
    Key("key", text, '"northgate.pem"', "its private key"),
    Key("data", text, '"sfumato.toml"', "its own tables, budget and ledger"),
    Key("approve", _approval, '"by hand"', "who approves each question", "by hand"),
)


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a study: its terms and tables, and the public keys of the sites and the
    analyst.

    All parties have the same declaration.
    """

    name: str
    coordinator: str
    terms: Terms
    dataset: Dataset
    keys: Mapping[str, ec.EllipticCurvePublicKey] = field(repr=False, compare=False)
    encryption: str = ENCRYPTIONS[0]

    @property
    def is_encrypted(self) -> bool:
        """Whether the sites' masked sums are also encrypted (BFV) on their way to the
        coordinator.
        """
        return self.encryption == BFV

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of the sites that take part in the study."""
        return tuple(name for name in self.keys if name != ANALYST)

    @property
    def site_keys(self) -> dict[str, ec.EllipticCurvePublicKey]:
        """The public keys of the study's sites, by name."""
        return {name: self.keys[name] for name in self.sites}


@dataclass(frozen=True, slots=True)
class SiteFile:
    """The declaration of one site of a study: its name, private key and data, from a file."""

    study: Path
    site: str
    key: Path
    data: Path
    by_hand: bool
    folder: Path


def read_study(path: str | Path) -> Declared:
    """Reads the declaration of a study from a file.

    Raises:
        InvalidConfig: a key is missing, unknown or wrong; fewer than 3 sites; two sites with one
            key; fewer than 2 sites beside those that may collude.
        WrongUse: an encryption whose package is not installed.
    """
    form = read(read_toml(path, _REMEDY), "the study", STUDY)
    folder = Path(path).parent
    named = require_table(form["sites"], "sites")
    if len(named) < _FEWEST or ANALYST in named:
        raise InvalidConfig(
            f"{len(named)} sites.", allowed=f"{_FEWEST} or more, none called {ANALYST}"
        )
    keys = {name: _public(folder, name, file) for name, file in named.items()}
    least = len(keys) if form["least"] is None else form["least"]
    colluders = form["colluders"]
    if not colluders + 2 <= least <= len(keys):
        raise InvalidConfig(
            f"least = {least} of {len(keys)} sites, with colluders = {colluders}.",
            allowed=f"from colluders + 2 to {len(keys)}",
            remedy="With fewer, a site that sees the answer would know the noise of the others.",
        )
    try:
        roster = roster_of(keys)
    except SfumatoError as error:
        raise InvalidConfig(error.problem, allowed=error.allowed) from None
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    terms = Terms(digest, roster, len(keys), least, colluders, form["overlap"])
    tables = {name: _table(part, name, folder) for name, part in form["tables"].items()}
    dataset = Dataset(form["study"], tables).described
    keys[ANALYST] = _public(folder, "analyst", form["analyst"])
    encryption = form["encryption"]
    if encryption == BFV:
        require_bfv()
    return Declared(form["study"], form["coordinator"], terms, dataset, keys, encryption)


def read_site(path: str | Path) -> SiteFile:
    """Reads the declaration of a single site from a file.

    Raises:
        InvalidConfig: a key is missing, unknown or wrong.
    """
    form = read(read_toml(path, _REMEDY), "the site", SITE)
    folder = Path(path).parent
    return SiteFile(
        folder / form["study"],
        form["site"],
        folder / form["key"],
        folder / form["data"],
        form["approve"] == APPROVALS[0],
        folder / f"{Path(path).stem}.rounds",
    )


def differences(study: Dataset, own: Dataset) -> tuple[str, ...]:
    """Returns a line for each declaration of a study that a site's own dataset states differently.

    >>> import sfumato as sf
    >>> def declared(upper):
    ...     return Dataset("d", {"people": sf.Table("p.csv", columns={"age": sf.Integer(0, upper)})})
    >>> differences(declared(99), declared(120))
    ('people.age: Integer(0, 99) in the study, Integer(0, 120) here',)
    """
    if study.relation is not own.relation:
        return (f"relation: {study.relation.value} in the study, {own.relation.value} here",)
    found = []
    for name, wanted in study.tables.items():
        if name not in own.tables:
            found.append(f"{name}: no such table here")
            continue
        here = own.tables[name].described
        for column, kind in wanted.columns.items():
            if column not in here.columns:
                found.append(f"{name}.{column}: not declared here")
            elif repr(here.columns[column]) != repr(kind):
                found.append(
                    f"{name}.{column}: {kind!r} in the study, {here.columns[column]!r} here"
                )
        for part in ("unit", "size", "public"):
            ours, theirs = getattr(here, part), getattr(wanted, part)
            if ours != theirs:
                found.append(f"{name}.{part}: {theirs!r} in the study, {ours!r} here")
    return tuple(found)


def _table(form: Any, name: str, folder: Path) -> Any:
    """A table of a study, which has no source."""
    place = f"tables.{name}"
    if "source" in require_table(form, place):
        raise InvalidConfig(f"{place}: a source.", remedy="Sources stand in each sfumato.toml.")
    return read_table({**form, "source": "-"}, place, folder)


def _public(folder: Path, name: str, file: object) -> ec.EllipticCurvePublicKey:
    """The public key of a party."""
    if not isinstance(file, str):
        raise InvalidConfig(f"sites.{name} = {shown(file)}.", allowed="the name of a PEM file")
    try:
        return public_key(folder / file)
    except SfumatoError as error:
        raise InvalidConfig(
            f"{name}: {error.problem}", allowed=error.allowed, remedy=error.remedy
        ) from None
