# SPDX-License-Identifier: Apache-2.0
"""Plans SQL over private answers, or refuses the statement with another one that can be asked."""

from contextlib import suppress
from itertools import islice

from sfumato.engines.scratch import Scratch
from sfumato.errors import (
    MissingDeclaration,
    Refused,
    SfumatoError,
    UnknownName,
    UnsupportedSql,
)
from sfumato.metadata.dataset import Dataset
from sfumato.query.outer import Outer, planned_outer
from sfumato.query.statements import Statements
from sfumato.query.subqueries import NotOneQuestion, Policy, Resolver
from sfumato.sql.instead import proposals
from sfumato.sql.lower import text_of, tree

# The most proposals that are planned: a refusal must not take long, and each takes as long as it.
_MOST_TRIES = 8


def outer_or_refusal(
    question: Resolver,
    statements: Statements,
    scratch: Scratch,
    policy: Policy,
    refusal: Refused,
) -> Outer:
    """Returns the plan of SQL over private answers, for a statement that is no single question;
    else raises ``refusal`` with a proposal.

    Nothing is charged.

    Raises:
        Refused: the statement is refused; ``instead`` is a statement that is not, at the same
            price, or None. It follows from the statement, the price and the declarations.
    """
    try:
        outer = planned_outer(question, statements, scratch, policy)
        if outer is None:
            raise refusal
    except (MissingDeclaration, UnknownName, UnsupportedSql) as final:
        final.instead = _instead(question, statements, scratch, policy)
        raise
    return outer


def _instead(
    question: Resolver, statements: Statements, scratch: Scratch, policy: Policy
) -> str | None:
    """Returns the first proposal that can be planned at the price of the refused statement."""
    statement, parameters, price = question.statement
    dataset: Dataset = statements.asker.dataset
    with suppress(SfumatoError):
        for proposal in islice(proposals(tree(statement), dataset), _MOST_TRIES):
            text = text_of(proposal)
            other = question.part(text, price, parameters)
            with suppress(SfumatoError):
                if _can_be_planned(other, statements, scratch, policy):
                    return text
    return None


def _can_be_planned(
    question: Resolver, statements: Statements, scratch: Scratch, policy: Policy
) -> bool:
    """Whether a statement is one question, or SQL over several; it may raise what refuses it."""
    try:
        step = question.rehearse(policy)
    except NotOneQuestion:
        return planned_outer(question, statements, scratch, policy) is not None
    statements.unstored_plan(step)
    return True
