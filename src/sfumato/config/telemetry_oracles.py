# SPDX-License-Identifier: Apache-2.0
"""Reads the oracle of a telemetry task in a ``sfumato.toml``, with its options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.config.near_names import near
from sfumato.errors import InvalidConfig, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.telemetry import Lattice, Listed, Texts, Words, oracles
from sfumato.telemetry.choose import REPORT_BYTES, chosen
from sfumato.telemetry.oracles.form import AnyOracle

# What makes the oracle of a name; each takes its options by name.
_VALUES: Mapping[str, Callable[..., AnyOracle]] = {
    "bit": oracles.bit,
    "category": oracles.category,
    "hashed": oracles.hashed,
    "levels": oracles.levels,
    "mean": oracles.mean,
    "projective": oracles.projective,
    "unary": oracles.unary,
}
_TEXTS: Mapping[str, Callable[..., AnyOracle]] = {
    "sketch": oracles.sketch,
    "count_mean": oracles.count_mean,
    "hadamard_count_mean": oracles.hadamard_count_mean,
    "rappor": oracles.rappor,
}
_WORDS: Mapping[str, Callable[..., AnyOracle]] = {
    "prefixes": oracles.prefixes,
    "fragments": oracles.fragments,
}
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "levels": ("branching",),
    "sketch": ("rows", "buckets"),
    "count_mean": ("rows", "buckets"),
    "hadamard_count_mean": ("rows", "buckets"),
    "rappor": ("bits", "hashes", "cohorts", "f", "p", "q"),
    "fragments": ("whole",),
}
_SHARES = {"f", "p", "q", "whole"}


@dataclass(frozen=True, slots=True)
class OracleConfig:
    """The declaration of an oracle: ``named`` is its name, or a table of ``kind`` and options.

    ``epsilon`` is the cost of one report; None if the file states none.
    """

    where: str
    named: object
    epsilon: str | None
    report_bytes: int = REPORT_BYTES

    def of(self, domain: Listed | Lattice | Texts | Words) -> AnyOracle:
        """Returns the frequency oracle for a domain; without a declared oracle, the default for its
        kind.

        Raises:
            InvalidConfig: no such oracle for this domain, no such option, or no epsilon.
            InvalidDeclaration: the options are invalid together.
        """
        if isinstance(domain, Texts):
            kind, options = self._chosen(_TEXTS, "sketch")
            if kind == "rappor":
                return self._rappor(options)
            return _TEXTS[kind](self._paid, **options)
        if isinstance(domain, Words):
            kind, options = self._chosen(_WORDS, "prefixes")
            return _WORDS[kind](domain.symbols, domain.length, self._paid, **options)
        if self.named is None:
            return self._best(domain)
        kind, options = self._chosen(_VALUES, "")
        return _VALUES[kind](domain.size, self._paid, **options)

    def _best(self, domain: Listed | Lattice) -> AnyOracle:
        """The oracle with the smallest report among those within 2% of the least error."""
        return chosen(domain.size, self._paid, self.report_bytes).oracle

    @property
    def _paid(self) -> Number:
        """The epsilon, which is required by all oracles except RAPPOR."""
        if self.epsilon is None:
            raise InvalidConfig(f"{self.where}: missing epsilon.", allowed='epsilon = "1"')
        return self.epsilon

    def _rappor(self, options: Mapping[str, Any]) -> AnyOracle:
        """RAPPOR, whose epsilon follows from its probabilities."""
        if self.epsilon is not None:
            raise InvalidConfig(
                f"{self.where}: an epsilon of RAPPOR, which follows from f and hashes.",
                remedy="Leave epsilon out, and set f and hashes: "
                '{kind = "rappor", f = "0.5", hashes = 1}',
            )
        return oracles.rappor(**options)

    def _chosen(
        self,
        known: Mapping[str, Callable[..., AnyOracle]],
        usual: str,
    ) -> tuple[str, dict[str, Any]]:
        """The kind of the oracle, and its options."""
        form = self.named
        if form is None:
            form = usual
        if isinstance(form, str):
            form = {"kind": form}
        kind = form.get("kind") if isinstance(form, Mapping) else None
        if not isinstance(form, Mapping) or not isinstance(kind, str) or kind not in known:
            written = kind if isinstance(kind, str) else form
            raise InvalidConfig(
                f"{self.where}: the oracle {shown(written)}.",
                allowed=", ".join(known),
                remedy=near(written, known),
            )
        names = _OPTIONS.get(kind, ())
        options = {name: part for name, part in form.items() if name != "kind"}
        for name in options:
            if name not in names:
                raise InvalidConfig(
                    f"{self.where}: the option {shown(name)} of the oracle {kind!r}.",
                    allowed=", ".join(names) or "none",
                    remedy=near(name, names),
                )
        return kind, {name: self._option(name, part) for name, part in options.items()}

    def _option(self, name: str, part: object) -> object:
        """The value of an option: a whole number, or a share as an exact fraction."""
        if name in _SHARES and isinstance(part, str | int | float):
            return to_fraction(name, str(part))
        if name not in _SHARES and type(part) is int:
            return part
        raise InvalidConfig(
            f"{self.where}: {name} = {shown(part)}.",
            allowed='a share such as "0.5"' if name in _SHARES else "a whole number",
        )
