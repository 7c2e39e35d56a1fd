# SPDX-License-Identifier: Apache-2.0
"""Text to the syntax tree of one SELECT, or a refusal that shows where."""

import logging

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sfumato.errors import SqlSyntaxError, UnsupportedSql
from sfumato.sql.reject import NOT_A_QUERY, refuse, reject

# sqlglot warns on the console about statements that we refuse anyway.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_MAX_LENGTH = 100_000


def parse(text: str) -> exp.Select:
    """The one SELECT that ``text`` is.

    Raises:
        SqlSyntaxError: not SQL; the line and column are given.
        UnsupportedSql: several statements, or one that is not a SELECT.
    """
    if not isinstance(text, str) or len(text) > _MAX_LENGTH:
        raise UnsupportedSql(f"A statement that is not a text of at most {_MAX_LENGTH:,} characters.")
    try:
        statements = [each for each in sqlglot.parse(text, read="duckdb") if each is not None]
    except SqlglotError as error:
        raise _syntax_error(error) from None
    except RecursionError:
        raise UnsupportedSql("A statement that is nested too deeply.", remedy="Write fewer brackets.") from None
    if not statements:
        raise SqlSyntaxError("The statement is empty.", line=1, column=1, remedy="SELECT COUNT(*) FROM ...")
    if len(statements) > 1:
        raise UnsupportedSql(f"{len(statements)} statements in one text.", remedy="Ask one SELECT at a time.")
    statement = statements[0]
    if isinstance(statement, exp.Query | exp.Values) and not isinstance(statement, exp.Select):
        raise reject(statement)
    if not isinstance(statement, exp.Select):
        raise refuse(f"The statement {statement.key.upper()}", NOT_A_QUERY)
    return statement


def _syntax_error(error: SqlglotError) -> SqlSyntaxError:
    details = getattr(error, "errors", None) or [{}]
    first = details[0]
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    what = str(first.get("description") or "The text cannot be read").strip().rstrip(".")
    near = str(first.get("highlight") or "")[:40]
    at = f" at {near!r}" if near else ""
    return SqlSyntaxError(
        f"Not SQL: {what}{at}, line {line}, column {column}.",
        line=line,
        column=column,
        remedy="SELECT ... FROM table [WHERE ...] [GROUP BY ...] [HAVING ...] [ORDER BY ...] [LIMIT n]",
    )
