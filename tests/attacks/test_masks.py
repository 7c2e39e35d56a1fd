# SPDX-License-Identifier: Apache-2.0
"""Attacks on a sum over sites: each opens a hospital's numbers once its check is gone."""

from collections.abc import Mapping

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms import masks as module
from sfumato.mechanisms.masks import FreshKey, Masks
from tests.contracts.studies import identities, masks_of, publics, summed

KEYS = identities("a", "b", "c")
ROW = np.arange(5, dtype=np.int64) + 100


def with_a_copied_key(run: bytes = b"run") -> list[int]:
    """What b sends where c presents a's fresh key as its own, signed by c."""
    fresh = {name: FreshKey(name, key, run) for name, key in KEYS.items()}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    copied = module._signed(run, "c", fresh["a"].public)
    shown["c"] = (fresh["a"].public, KEYS["c"].sign(copied, ec.ECDSA(SHA256())))
    return summed(fresh["b"].masks(publics(KEYS), shown).masked(1, ROW))


def test_a_site_that_presents_anothers_fresh_key_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidDeclaration):
        with_a_copied_key()
    # without the check the names keep the pairs apart
    monkeypatch.setattr(module, "_require_different", lambda points: None)
    assert with_a_copied_key() != ROW.tolist()
    # without names b adds and subtracts one stream: its vector is in the clear
    framed = module._framed

    def nameless(*parts: bytes) -> bytes:
        return framed(*sorted(part for part in parts if len(part) != 1))

    monkeypatch.setattr(module, "_framed", nameless)
    assert with_a_copied_key() == ROW.tolist()


def test_sites_that_were_told_two_prices_give_a_sum_that_nobody_can_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The coordinator tells b and c of a run with less noise; fresh keys are signed for one run."""
    cheap, dear = b"cheap" * 8, b"dear." * 8

    def readable() -> bool:
        shares = [
            masks_of(KEYS, cheap)["a"].masked(1, ROW),
            masks_of(KEYS, dear)["b"].masked(1, ROW),
            masks_of(KEYS, dear)["c"].masked(1, ROW),
        ]
        return summed(*shares) == (3 * ROW).tolist()

    assert not readable()
    # and a signature for one run is none for another
    fresh = {
        name: FreshKey(name, key, cheap if name == "a" else dear) for name, key in KEYS.items()
    }
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    with pytest.raises(InvalidDeclaration):
        fresh["a"].masks(publics(KEYS), shown)

    def unbound(run: bytes, site: str, public: bytes) -> bytes:
        return site.encode() + public

    def told(run_of: Mapping[str, bytes]) -> bool:
        fresh = {name: FreshKey(name, key, run_of[name]) for name, key in KEYS.items()}
        shown = {name: (key.public, key.signature) for name, key in fresh.items()}
        every = [key.masks(publics(KEYS), shown).masked(1, ROW) for key in fresh.values()]
        return summed(*every) == (3 * ROW).tolist()

    monkeypatch.setattr(module, "_signed", unbound)
    runs = {"a": cheap, "b": dear, "c": dear}
    # signatures that are bound to no run are taken, but the salt of the keys holds the run
    assert not told(runs)
    monkeypatch.setattr(FreshKey, "_run", property(lambda self: b"", lambda self, run: None))
    assert told(runs)


def test_a_step_is_not_masked_for_two_rosters() -> None:
    """The coordinator shows a the sites a, b, c and b, c, d the sites b, c, d."""
    keys = identities("a", "b", "c", "d")
    fresh = {name: FreshKey(name, key, b"run") for name, key in keys.items()}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    sites = publics(keys)

    def share(name: str, among: str) -> bytes:
        some = {other: shown[other] for other in among}
        return fresh[name].masks(sites, some).masked(1, ROW)

    mixed = {name: share(name, "abc" if name == "a" else "bcd") for name in keys}
    for left_out in ("", "a", "b", "c", "d"):
        some = [body for name, body in mixed.items() if name not in left_out]
        wanted = ((4 - len(left_out)) * ROW).tolist()
        assert (summed(*some) == wanted) == (left_out == "a")


def test_the_same_masks_for_another_vector_would_open_the_difference() -> None:
    masks = masks_of(KEYS)["a"]
    first = masks.masked(1, ROW)
    with pytest.raises(InvalidDeclaration):
        masks.masked(1, 2 * ROW)
    again = Masks("a", masks.roster, masks._pairs)
    second = again.masked(1, 2 * ROW)
    # the mutant: masks that are made anew of the same keys
    assert (np.array(summed(second)) - np.array(summed(first))).tolist() == ROW.tolist()
