# SPDX-License-Identifier: Apache-2.0
"""The description is made from the table."""

from sfumato.web.openapi import description
from sfumato.web.routes import ROUTES


def test_every_route_is_described() -> None:
    paths = description()["paths"]
    described = {(method.upper(), path) for path, found in paths.items() for method in found}
    assert described == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        operation = paths[route.path][route.method.lower()]
        names = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert names == {each.strip("{}") for each in route.segments if "{" in each}
        if route.fields:
            content = operation["requestBody"]["content"]["application/json"]["schema"]
            assert set(content["properties"]) == set(route.fields)


def test_a_charged_route_takes_a_key_and_no_5xx_but_503() -> None:
    query = description()["paths"]["/v1/datasets/{dataset}/query"]["post"]
    assert "Idempotency-Key" in {each["name"] for each in query["parameters"]}
    assert {"202", "2XX", "4XX", "503"} == set(query["responses"])


def test_what_takes_no_key_has_none() -> None:
    paths = description()["paths"]
    keyed = {
        path.rpartition("/")[2]
        for path, found in paths.items()
        for operation in found.values()
        if any(each["name"] == "Idempotency-Key" for each in operation["parameters"])
    }
    assert keyed == {"query", "marginals"}
