# SPDX-License-Identifier: Apache-2.0
"""``mine``, ``preview`` and ``load``: the entry points of the room."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.mining.found import Found
from sfumato.mining.itemsets import Itemsets
from sfumato.mining.means import Means
from sfumato.mining.paths import Paths
from sfumato.mining.recipe import FORMAT, KIND, Asked, MiningTask, Recipe
from sfumato.mining.terms import Terms
from sfumato.query.cost import Cost
from sfumato.query.left_after import Balances, left_now
from sfumato.query.pipeline import compile_rows
from sfumato.query.session import Session
from sfumato.show.render import text_table
from sfumato.sql.row_list import row_list

RECIPES: Mapping[str, type[Recipe]] = {kind.name: kind for kind in (Terms, Itemsets, Paths, Means)}


@dataclass(frozen=True)
class Preview:
    """The preview of a call of ``mine``: its cost, the noise of each release, and how many people a
    key needs to be shown.

    ``preview`` returns one. ``releases`` has the name of each release, the 95% half-width of a
    count in people, and how many people a key needs to be shown.
    """

    cost: Cost
    releases: tuple[tuple[str, str, str], ...]
    balances: Balances | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        header = ("release", "+- people (95%)", "people needed to show a key")
        lines = [text_table(header, [list(row) for row in self.releases])]
        lines.append(f"cost: {self.cost}")
        lines += left_now(self.balances, self.cost.charge)
        return "\n".join([*lines, "nothing was charged"])


def mine(
    session: Session,
    recipe: Recipe,
    statement: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> Found:
    """Answers a recipe over the rows of a SELECT with noisy counts (or means); the account is
    charged once.

    The protected unit is the person with all of its rows. The cost is ``rho``, or ``epsilon`` with
    ``delta``; a recipe that shows values that are not declared needs a delta: beside an epsilon
    half of it pays for them, beside a rho all of it. Public keys alone can be paid by ``epsilon``.
    The same question is answered from the ledger, free.

    Raises:
        UnknownName, WrongUse, MissingDeclaration, UnsupportedSql, InvalidNumber: before anything is
            charged.
        Others as ``Session.ask``.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> rows = pa.table({"who": range(4000), "note": ["red eye", "eye", "left ear", "ear"] * 1000})
    >>> note = sf.Text(tokens=sf.Tokens())
    >>> notes = sf.Table(rows, unit=sf.Unit("who", max_rows_total=1), columns={"note": note})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"notes": notes}, dataset="clinic", budget=sf.Budget(10, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     found = mine(session, Terms("note"), "SELECT note FROM notes", rho="0.5", delta="1e-7")
    ...     again = load(session, found.charge)
    >>> sorted(found.terms), again.to_dicts() == found.to_dicts()
    (['ear', 'eye', 'left', 'red'], True)
    >>> folder.cleanup()
    """
    task = _planned(session, recipe, statement, Asked(epsilon, rho, delta))
    stored = session.ask(task)
    facts = json.loads(stored.body.decode("utf-8", "surrogatepass"))
    return type(recipe).found(facts, recalled=stored.recalled)


def preview(
    session: Session,
    recipe: Recipe,
    statement: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> Preview:
    """Returns what ``mine`` with these arguments would cost and how noisy it would be; free.

    Raises:
        As ``mine``, but for what an account can pay.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> note = sf.Text(tokens=sf.Tokens())
    >>> notes = sf.Table(pa.table({"note": ["eye"]}), columns={"note": note})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"notes": notes}, dataset="clinic", budget=sf.Budget(10, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     plan = preview(session, Terms("note"), "SELECT note FROM notes", rho="0.5",
    ...                    delta="1e-7")
    >>> plan.releases
    (('keys of 1', '9', '28 (half of the time), 35 (95%)'),)
    >>> folder.cleanup()
    """
    task = _planned(session, recipe, statement, Asked(epsilon, rho, delta))
    return Preview(session.price(task), tuple(task.releases()), session.balances)


def load(session: Session, charge: str) -> Found:
    """Returns the answer of an earlier ``mine`` from the ledger, by the id of its charge; costs no
    budget.

    Raises:
        UnknownName: this account has no such charge.
        WrongUse: the charge is none of ``mine``.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> rows = pa.table({"who": range(2000), "ward": ["eye", "ear"] * 1000})
    >>> ward = sf.Category("eye", "ear")
    >>> stays = sf.Table(rows, unit=sf.Unit("who", max_rows_total=1), columns={"ward": ward})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"stays": stays}, dataset="clinic", budget=sf.Budget(10, "1e-6"),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     charge = mine(session, Itemsets(), "SELECT ward FROM stays", rho="0.5").charge
    ...     found = load(session, charge)
    >>> found.recalled, [row["items"] for row in found.to_dicts()][:1] in (["ear"], ["eye"])
    (True, True)
    >>> folder.cleanup()
    """
    stored = session.stored(charge)
    try:
        facts: Any = json.loads(stored.body.decode("utf-8", "surrogatepass"))
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or facts.get("kind") != KIND or facts["format"] != FORMAT:
        raise WrongUse(f"The charge {shown(charge)} is no result of mining.")
    return RECIPES[facts["recipe"]].found(facts, recalled=True)


def _planned(session: Session, recipe: Recipe, statement: str, asked: Asked) -> MiningTask:
    """Returns the task of a recipe; reads declarations alone."""
    if not isinstance(recipe, Recipe):
        raise WrongUse(
            f"recipe={shown(recipe)}.",
            allowed=f"mn.{', mn.'.join(RECIPES)}, with their settings",
        )
    rows = row_list(statement, session.dataset)
    return recipe.planned(compile_rows(rows, session.dataset), asked)
