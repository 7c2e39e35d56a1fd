# SPDX-License-Identifier: Apache-2.0
"""Documents that somebody signs: facts with their sources, warnings, and open questions.

The layouts, questions and laws of each kind are in ``assessment.toml``.
"""

import html
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sfumato.errors import LedgerCorrupt, WrongUse, shown
from sfumato.exact.rounding import float_up
from sfumato.ledger.assessment_facts import Evidence, Fact, Texts, facts_of, warnings_of
from sfumato.ledger.assessment_picture import lifetime_picture
from sfumato.ledger.report_text import LANGUAGES
from sfumato.metadata.contract import Contract
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.show import page as show

KINDS = ("pipia", "dpia", "release", "registry")


@dataclass(frozen=True, slots=True)
class Section:
    """Facts by their labels; and questions, each with its key, its text and its answer."""

    title: str
    facts: Mapping[str, Fact]
    questions: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Assessment:
    """A document in one language; ``words`` are the labels of its parts.

    ``picture`` is an SVG below the first section, or empty.
    """

    kind: str
    language: str
    title: str
    warnings: Sequence[str]
    sections: Sequence[Section]
    laws: Sequence[str]
    words: Mapping[str, str]
    picture: str = ""

    @property
    def unanswered(self) -> list[str]:
        """The questions without an answer."""
        return [
            question
            for section in self.sections
            for _, question, answer in section.questions
            if not answer.strip()
        ]


@cache
def _layouts() -> Texts:
    text = (files("sfumato.ledger") / "assessment.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def assess(
    kind: str, evidence: Evidence, answers: Mapping[str, str], language: str = "en"
) -> Assessment:
    """Returns a privacy assessment of a dataset, of a kind (``KINDS``) and in a language ("en" or
    "zh").

    Guarantees:
        no document is made from a ledger that does not verify
        a public document has no statement, analyst, path or head

    Raises:
        LedgerCorrupt: the ledger does not verify.
        ContractMismatch: the declarations are not those of the ledger.
        WrongUse: an answer to a question that the document does not have.
    """
    _require_verified(evidence)
    texts, at = _layouts(), list(LANGUAGES).index(language)
    facts = facts_of(evidence, texts, language)
    layout = texts[kind]
    _require_asked(kind, layout, answers)
    sections = []
    for section in layout["sections"]:
        labelled = {texts["facts"][key][at]: facts[key] for key in section["facts"]}
        questions = [
            (key, both[at], answers.get(key, ""))
            for key, both in section.get("questions", {}).items()
        ]
        sections.append(Section(section["title"][at], labelled, questions))
    warnings = [
        texts["warnings"][key][at].format(value=value) for key, value in warnings_of(evidence)
    ]
    picture = ""
    if layout.get("picture"):
        drawn = [texts["picture"][name][at] for name in ("title", "mark")]
        picture = lifetime_picture(evidence.history.bound.epsilon, *drawn).svg
    return Assessment(
        kind,
        language,
        layout["title"][at],
        warnings,
        sections,
        [texts["laws"][key][at] for key in layout["laws"]],
        {name: both[at] for name, both in (texts["words"] | texts["sources"]).items()},
        picture,
    )


def _questions(layout: Texts) -> Iterator[tuple[str, Sequence[str]]]:
    for section in layout["sections"]:
        yield from section.get("questions", {}).items()


def answers_text(kind: str, language: str = "en") -> str:
    """Returns a TOML template with the questions of an assessment document, to be answered."""
    at = list(LANGUAGES).index(language)
    lines = [f'document = "{kind}"', "", "[answers]"]
    for key, both in _questions(_layouts()[kind]):
        lines += [f"# {both[at]}", f'{key} = ""']
    return "\n".join([*lines, ""])


def answers_in(kind: str, form: Mapping[str, Any]) -> dict[str, str]:
    """Returns the answers, by question key, in the parsed TOML of a filled-in template.

    Raises:
        WrongUse: it belongs to another document, or an answer is no text.
    """
    if form.get("document") != kind:
        raise WrongUse(
            f"These answers are of another document, not of {kind}.",
            remedy="Name another file: --answers. If it does not exist, it is written.",
        )
    answers = form.get("answers", {})
    if not isinstance(answers, dict) or not all(
        isinstance(answer, str) for answer in answers.values()
    ):
        raise WrongUse("Answers that are no texts.", allowed='[answers] purpose = "health care"')
    return answers


def audit_in(text: str) -> dict[str, Any]:
    """Parses and checks the JSON that ``sfumato audit system`` has saved; returns it.

    Raises:
        WrongUse: the text is something else.
    """
    try:
        form = json.loads(text)
    except (ValueError, RecursionError):
        form = None
    if (
        not isinstance(form, dict)
        or form.get("verdict") not in ("VIOLATED", "HOLDS", "UNDECIDED")
        or type(form.get("pairs")) is not int
        or not isinstance(form.get("forms"), list)
    ):
        raise WrongUse(
            "The file of --audit is no saved audit.",
            allowed="what 'sfumato audit system --format json' prints",
        )
    return form


def as_html(document: Assessment) -> str:
    """Returns an assessment as a self-contained HTML page."""
    words, parts = document.words, [_tag("h1", document.title), _tag("p", document.words["scope"])]
    for title, lines in _before(document):
        items = "".join(_tag("li", line) for line in lines)
        parts.append(f"<section>{_tag('h2', title)}<ul>{items}</ul></section>")
    for place, section in enumerate(document.sections):
        body = [_tag("h2", section.title)]
        if section.facts:
            head = "".join(_tag("th", words[name]) for name in ("fact", "value", "source"))
            rows = "".join(
                "<tr>"
                + "".join(_tag("td", cell) for cell in (label, fact.value, words[fact.source]))
                + "</tr>"
                for label, fact in section.facts.items()
            )
            body.append(f'<table class="log facts"><thead><tr>{head}</tr></thead>{rows}</table>')
        if place == 0:
            body.append(document.picture)
        for _, question, answer in section.questions:
            body.append(f"<p>{_tag('strong', question)}</p>")
            body.append(_tag("p", answer or words["unanswered"]))
        parts.append(f"<section>{''.join(body)}</section>")
    laws = "".join(_tag("li", law) for law in document.laws)
    parts.append(f"<section>{_tag('h2', words['laws'])}<ul>{laws}</ul></section>")
    language = LANGUAGES[document.language]["lang"]
    return show.page(document.title, "".join(parts), language=language)


def _before(document: Assessment) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields what a reader must see first: the warnings, then the open questions."""
    if document.warnings:
        yield document.words["warnings"], document.warnings
    if document.unanswered:
        yield document.words["open"], document.unanswered


def _tag(name: str, text: str) -> str:
    return f"<{name}>{html.escape(text)}</{name}>"


def as_markdown(document: Assessment) -> str:
    """Returns an assessment as Markdown; user texts in it cannot form markup."""
    words, lines = document.words, [f"# {document.title}", "", document.words["scope"]]
    for title, items in _before(document):
        lines += ["", f"## {title}", "", *(f"- {_plain(item)}" for item in items)]
    for section in document.sections:
        lines += ["", f"## {section.title}", ""]
        for label, fact in section.facts.items():
            lines.append(f"- {label}: {_plain(fact.value)} ({words[fact.source]})")
        for _, question, answer in section.questions:
            lines += ["", f"**{question}**", "", _plain(answer or words["unanswered"])]
    lines += ["", f"## {words['laws']}", "", *(f"- {law}" for law in document.laws), ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Returns a text on one line, with the signs of Markdown and HTML escaped."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def to_json(document: Assessment) -> dict[str, Json]:
    """Returns an assessment as JSON."""
    sections: list[Json] = []
    for section in document.sections:
        facts: list[Json] = [
            {"name": label, "value": fact.value, "source": fact.source}
            for label, fact in section.facts.items()
        ]
        questions: list[Json] = [
            {"key": key, "question": question, "answer": answer}
            for key, question, answer in section.questions
        ]
        sections.append({"title": section.title, "facts": facts, "questions": questions})
    return {
        "document": document.kind,
        "language": document.language,
        "title": document.title,
        "warnings": list[Json](document.warnings),
        "open": list[Json](document.unanswered),
        "sections": sections,
        "laws": list[Json](document.laws),
    }


def _require_verified(evidence: Evidence) -> None:
    """Raises unless the ledger verifies and has the contract of these declarations."""
    if evidence.history.report.problems:
        raise LedgerCorrupt(
            "No report of a ledger that does not verify.", remedy="See: sfumato ledger verify"
        )
    contract = evidence.history.contract
    budget = Budget(contract["epsilon"], contract["delta"])
    Contract.of(evidence.dataset, budget).require_same(contract)


def _require_asked(kind: str, layout: Texts, answers: Mapping[str, str]) -> None:
    """Raises WrongUse for an answer to a question that a document does not have."""
    unknown = set(answers) - {key for key, _ in _questions(layout)}
    if unknown:
        raise WrongUse(
            f"An answer to {shown(min(unknown))}, which {kind} does not ask.",
            remedy="Name the answers of this document: --answers.",
        )


def registry_record(evidence: Evidence, answers: Mapping[str, str]) -> dict[str, Json]:
    """Returns the entry of a dataset for the registry of DP deployments; open fields are ''.

    Raises:
        WrongUse: an answer that the schema of the registry does not allow. Others as ``assess``.
    """
    assess("registry", evidence, answers)
    _require_allowed(answers)
    facts, history = facts_of(evidence, _layouts(), "en"), evidence.history

    def answered(*keys: str) -> dict[str, Json]:
        return {key: answers.get(key, "") for key in keys}

    basic = ("name", "description", "intended_use", "data_product_type", "data_product_region")
    tier = answers.get("tier", "")
    unprotected = f"public tables: {facts['public'].value}; stated sizes: {facts['sizes'].value}"
    return {
        **answered("url_slug"),
        "status": "Draft",
        "tier": int(tier) if tier else "",
        "deployment": {
            "basic": {
                **answered(*basic),
                "data_curators": [answers.get("data_curators", "")],
                **answered("publication_date"),
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if history.bound.delta else "Pure DP",
                "data_domain": facts["bounds"].value,
                "unprotected_quantities": unprotected,
            },
            "privacy_loss": {
                "privacy_unit": facts["unit"].value,
                "privacy_unit_details": "an answer would come out almost the same "
                f"{facts['neighbours'].value}",
                "privacy_parameters": {
                    "epsilon": float_up(history.bound.epsilon),
                    "delta": float_up(history.bound.delta),
                },
                "privacy_parameters_details": facts["meaning"].value,
            },
            "deployment_model": {
                **answered("model_name"),
                "release_type": "One release" if history.charges == 1 else "Many releases",
                "release_type_details": f"{history.charges} charges",
                **answered("data_source_type", "access_type"),
            },
            "accounting": {
                "composition": "sum of the limits of all periods; charged before the data is read"
            },
            "implementation": {
                "mechanisms": facts["mechanisms"].value,
                **answered("justification"),
            },
            "administrative": {"registry_authors": [answers.get("registry_authors", "")]},
        },
    }


def _require_allowed(answers: Mapping[str, str]) -> None:
    """Raises WrongUse for an answer that the schema of the registry does not allow."""
    allowed = _layouts()["registry"]["allowed"]
    for key, answer in answers.items():
        pattern = allowed.get(key, ".*")
        if answer and re.fullmatch(pattern, answer, re.DOTALL) is None:
            raise WrongUse(f"{key} = {shown(answer)}.", allowed=pattern.replace("|", ", "))
