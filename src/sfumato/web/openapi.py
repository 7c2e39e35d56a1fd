# SPDX-License-Identifier: Apache-2.0
"""``openapi.json``, made from the table of routes."""

from functools import cache
from typing import Any

from sfumato import __version__
from sfumato.web.routes import RESULT, ROUTES, Access, Pace, Route

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "allowed", "remedy", "charged"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "allowed", "remedy")},
        "status": {"type": "integer"},
        "charged": {"type": ["boolean", "null"]},
        "instead": {"type": "string"},
    },
}
_NUMBER = {"type": ["string", "number"]}
_TYPES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("epsilon", "rho", "delta", "max_epsilon"), _NUMBER),
    "error": {"type": ["string", "number", "object"]},
    "parameters": {"type": ["array", "object"]},
    "interval": {"type": "boolean"},
    "preview": {"type": "boolean"},
    "cliques": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    "questions": {"type": "object", "additionalProperties": {"type": "string"}},
    "weights": {"type": "object"},
    "sizes": {"type": "object"},
    "read_only": {"type": "boolean"},
    "rows": {"type": "integer"},
    "days": {"type": "integer"},
    "time_limit": {"type": "number"},
    "heads": {"type": "array", "items": {"type": "string"}},
    "values": {"enum": ["table", "clipped"]},
    "role": {"enum": ["owner", "auditor", "analyst"]},
}
_TEXT = {"type": "string"}


@cache
def description() -> dict[str, Any]:
    """Returns the description of the service's HTTP interface in OpenAPI 3.1, as a dictionary."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "sfumato", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    names = [segment.strip("{}") for segment in route.segments if segment.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names
    ]
    parameters += [{"name": name, "in": "query", "schema": _TEXT} for name in route.options]
    if route.takes_key:
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": _TEXT})
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    replies: dict[str, Any] = {
        "2XX": {"description": "Done."},
        "4XX": {"description": "Refused.", "content": problem},
    }
    if route.pace is Pace.JOB or route.path == RESULT:
        replies["202"] = {"description": "It goes on as a job."}
    replies["503"] = {"description": "Nothing was begun.", "content": problem}
    operation: dict[str, Any] = {
        "summary": route.does,
        "parameters": parameters,
        "responses": replies,
        "security": [] if route.access is Access.OPEN else [{"token": []}],
    }
    if route.fields:
        properties = {name: _TYPES.get(name, _TEXT) for name in route.fields}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation
