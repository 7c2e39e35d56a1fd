# SPDX-License-Identifier: Apache-2.0
"""The documents that somebody signs."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import ContractMismatch, LedgerCorrupt, WrongUse
from sfumato.ledger.assessment import (
    KINDS,
    answers_in,
    answers_text,
    as_html,
    as_markdown,
    assess,
    audit_in,
    registry_record,
    to_json,
)
from sfumato.ledger.assessment_facts import Evidence, mechanisms_of
from sfumato.ledger.summary import summary
from sfumato.metadata.column import Category, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from tests.contracts.charges import opened, paid, pure
from tests.ledger.test_report import text

AUDIT = {"verdict": "UNDECIDED", "pairs": 412, "forms": [{"name": "f", "result": "same"}] * 31}
PUBLIC = ("release", "registry")


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """A dataset with markers in all that a public document must not name."""
    ledger = opened(tmp_path / "marker-ledger.db", 1, "1e-8")
    charge = replace(pure("0.25", "one", analyst="marker-analyst"), purpose="marker-purpose")
    paid(ledger, charge, b'{"statement":"SELECT marker-statement"}')
    columns = {"age": Integer(0, 99), "name": Category(["marker-value"])}
    dataset = Dataset("d", {"t": Table("marker-place.csv", columns=columns, size=40)})
    history = summary(ledger, "d")
    saved = {**AUDIT, "statements": ["SELECT marker-audited"]}
    return Evidence(history, dataset, mechanisms_of(ledger, "d"), has_heads=False, audit=saved)


def forms(kind: str, evidence: Evidence) -> list[str]:
    """A document in both languages and in every format, as text."""
    made = [assess(kind, evidence, {}, language) for language in ("en", "zh")]
    texts = [form(each) for each in made for form in (as_html, as_markdown)]
    texts += [json.dumps(to_json(each), ensure_ascii=False) for each in made]
    if kind == "registry":
        texts.append(json.dumps(registry_record(evidence, {})))
    return texts


@pytest.mark.parametrize("kind", PUBLIC)
def test_a_public_document_has_no_statement_analyst_path_or_head(kind, evidence) -> None:
    for made in forms(kind, evidence):
        assert "marker" not in made
        assert evidence.history.report.head not in made


def test_a_document_for_the_owner_has_purposes_and_the_head_and_no_statement(evidence) -> None:
    for made in forms("pipia", evidence):
        assert "marker-purpose" in made.replace("\\", "")
        assert evidence.history.report.head in made
        assert "SELECT" not in made and "marker-value" not in made


def test_no_document_is_made_from_a_ledger_that_does_not_verify(evidence) -> None:
    history = evidence.history
    broken = replace(history, report=replace(history.report, problems=("an entry is missing",)))
    for kind in KINDS:
        with pytest.raises(LedgerCorrupt, match="does not verify"):
            assess(kind, replace(evidence, history=broken), {})


def test_other_declarations_than_the_ledgers_are_refused(evidence) -> None:
    public = Dataset("d", {"t": Table("marker-place.csv", columns={}, public=True)})
    with pytest.raises(ContractMismatch):
        assess("release", replace(evidence, dataset=public), {})


@pytest.mark.parametrize("kind", KINDS)
def test_both_languages_have_the_same_facts_and_questions(kind, evidence) -> None:
    english, chinese = (assess(kind, evidence, {}, language) for language in ("en", "zh"))
    assert len(english.warnings) == len(chinese.warnings)
    assert len(english.laws) == len(chinese.laws)
    for one, other in zip(english.sections, chinese.sections, strict=True):
        assert [fact.source for fact in one.facts.values()] == [
            fact.source for fact in other.facts.values()
        ]
        assert [key for key, *_ in one.questions] == [key for key, *_ in other.questions]
        digits = [[sign for sign in fact.value if sign.isdigit()] for fact in one.facts.values()]
        assert digits == [
            [sign for sign in fact.value if sign.isdigit()] for fact in other.facts.values()
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_no_document_judges(kind, evidence) -> None:
    for made in forms(kind, evidence):
        for word in ("compliant", "anonymous", "匿名", "符合法律"):
            assert word not in made.lower()


def test_answers_make_a_round_and_open_questions_come_first(evidence) -> None:
    form = tomllib.loads(answers_text("dpia", "zh"))
    assert set(answers_in("dpia", form).values()) == {""}
    asked = assess("dpia", evidence, answers_in("dpia", form))
    form["answers"]["decision"] = "<b>go</b> *on*"
    answered = assess("dpia", evidence, answers_in("dpia", form))
    assert len(asked.unanswered) - len(answered.unanswered) == 1
    page = text(as_html(answered))
    assert "<b>go</b>" in page
    assert page.index("nobody has answered") < page.index("0 Overview")
    assert page.index("Read first") < page.index("nobody has answered")
    assert "\\<b\\>go\\</b\\> \\*on\\*" in as_markdown(answered)


def test_answers_of_another_document_are_refused(evidence) -> None:
    with pytest.raises(WrongUse, match="another document"):
        answers_in("dpia", tomllib.loads(answers_text("pipia")))
    with pytest.raises(WrongUse, match="no texts"):
        answers_in("dpia", {"document": "dpia", "answers": {"decision": 3}})
    with pytest.raises(WrongUse, match="'team', which dpia"):
        assess("dpia", evidence, {"team": "us"})


@pytest.mark.parametrize(
    "saved", ["", "[]", '{"verdict": "fine"}', '{"verdict": "HOLDS"}', "[" * 9999]
)
def test_what_is_no_audit_is_refused(saved: str) -> None:
    with pytest.raises(WrongUse, match="no saved audit"):
        audit_in(saved)


def test_a_saved_audit_is_a_fact(evidence) -> None:
    assert audit_in(json.dumps(AUDIT)) == AUDIT
    document = as_markdown(assess("release", evidence, {}))
    assert "UNDECIDED: 412 pairs of neighbouring tables, 31 physical forms" in document


def test_the_record_of_the_registry(evidence) -> None:
    record = registry_record(evidence, {"tier": "2", "name": "Town"})
    deployment = record["deployment"]
    assert (record["tier"], record["status"], record["url_slug"]) == (2, "Draft", "")
    assert deployment["basic"]["name"] == "Town"
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == 1
    assert 1e-8 <= parameters["delta"] <= 1.0000000000000003e-8
    assert deployment["deployment_model"]["release_type"] == "One release"
    # the schema of 2026-07-15 has these parts and no others
    assert set(deployment) == {
        "basic", "dp_variant", "privacy_loss", "deployment_model", "accounting",
        "implementation", "administrative",
    }  # fmt: skip


ANSWERED = {
    "url_slug": "town_2026",
    "tier": "2",
    "name": "Town",
    "data_curators": "The town",
    "description": "Counts",
    "intended_use": "Planning",
    "data_product_type": "Summary statistics",
    "data_product_region": "Europe",
    "publication_date": "2026-01-31",
    "data_source_type": "Static",
    "access_type": "Interactive",
    "model_name": "Central",
    "justification": "As usual",
    "registry_authors": "Ann",
}
KINDS_OF_JSON = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": int | float,
}


def against_schema(value, schema, place="record"):
    """Yields where a value is not as its schema says, for the keywords that the schema uses."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(isinstance(value, KINDS_OF_JSON[kind]) for kind in types):
        yield f"{place}: {value!r} is no {types}"
    if value not in schema.get("enum", [value]):
        yield f"{place}: {value!r} is not allowed"
    if isinstance(value, dict):
        parts = schema["properties"]
        yield from (f"{place}: no {key}" for key in set(schema.get("required", ())) - set(value))
        yield from (f"{place}: unknown {key}" for key in set(value) - set(parts))
        for key in set(value) & set(parts):
            yield from against_schema(value[key], parts[key], f"{place}.{key}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{place}: too few"
        for item in value:
            yield from against_schema(item, schema["items"], place)


def test_an_answered_record_has_the_schema_of_the_registry(evidence) -> None:
    schema = json.loads((Path(__file__).parent / "data" / "registry_schema.json").read_text())
    assert set(ANSWERED) == set(answers_in("registry", tomllib.loads(answers_text("registry"))))
    record = json.loads(json.dumps(registry_record(evidence, ANSWERED)))
    assert list(against_schema(record, schema)) == []
    # the check notices what is open, and what is wrong
    assert len(list(against_schema(registry_record(evidence, {}), schema))) >= 5
    assert list(against_schema({**record, "status": "Done", "more": 1}, schema)) != []


@pytest.mark.parametrize(
    ("key", "answer"),
    [("tier", "4"), ("model_name", "central"), ("publication_date", "soon"), ("url_slug", "A b")],
)
def test_answers_that_the_registry_does_not_allow_are_refused(key, answer, evidence) -> None:
    with pytest.raises(WrongUse, match=key):
        registry_record(evidence, {key: answer})


def test_the_page_about_a_release_has_the_picture_of_its_lifetime(evidence) -> None:
    pages = {kind: as_html(assess(kind, evidence, {}, "zh")) for kind in KINDS}
    assert [kind for kind, page in pages.items() if "<svg" in page] == ["release"]
    assert "超过后信念可能发生很大变化" in pages["release"]
