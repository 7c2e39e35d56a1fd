# SPDX-License-Identifier: Apache-2.0
"""``sf.remote``: asks a service as a session asks in process, with the standard library alone.

A call that is lost on its way is repeated under the same idempotency key, so it is paid once.
"""

import http.client
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode, urlsplit

from sqlglot import exp

from sfumato.errors import Failed, UnknownName, WrongUse, shown
from sfumato.exact.rational import decimal_text, to_fraction
from sfumato.metadata.clip import Clipped, Values
from sfumato.query.answer import Answer
from sfumato.query.dataframe import Frame, frame
from sfumato.query.price import OnAverage
from sfumato.service.refusals import NotVisible, ResultDropped
from sfumato.web.problems import error_of

if TYPE_CHECKING:
    import pyarrow

_TRIES = 4
_TIMEOUT = 60.0
_AGAIN = (502, 503, 504)
_NUMBERS = ("epsilon", "rho", "delta", "max_epsilon")


def remote(
    address: str,
    *,
    dataset: str,
    purpose: str,
    token: str,
) -> "Remote":
    """Returns a client of one account of a service.

    ``token`` is what ``sfumato token add`` printed. Nothing is sent yet.

    Raises:
        WrongUse: the address is none of http:// or https://.

    >>> remote("http://127.0.0.1:8440", dataset="clinic", purpose="study", token="sfu_...")
    Remote('clinic' for 'study' at http://127.0.0.1:8440)
    """
    return Remote(address, dataset=dataset, purpose=purpose, token=token)


class Remote:
    """A client for one account of a service over HTTP, with most methods of a ``Session``."""

    def __init__(self, address: str, *, dataset: str, purpose: str, token: str) -> None:
        if not all(type(word) is str for word in (address, dataset, purpose, token)):
            raise WrongUse("An address, a dataset, a purpose or a token that is no string.")
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WrongUse(f"address={shown(address)}.", allowed="http://host:port, or https://")
        self._host, self._port = parts.hostname, parts.port
        self._is_tls = parts.scheme == "https"
        self._below = parts.path.rstrip("/")
        self._token = token
        self.dataset = dataset
        self.purpose = purpose
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def preview(self, sql: str | exp.Select, **price: Any) -> dict[str, Any]:
        """Returns a question's cost and expected errors, and how often one could pay it; free.

        Raises:
            SfumatoError: as ``Session.preview``.
        """
        form = self._form(sql, price)
        preview: dict[str, Any] = json.loads(self._send("POST", f"{self._place}/preview", form)[0])
        return preview

    def advise(
        self, sql: str | exp.Select, *, rows: int | None = None, **price: Any
    ) -> dict[str, Any]:
        """Returns the expected errors of a question under other clips, costs and groupings; free.

        Raises:
            SfumatoError: as ``Session.advise``; it takes no ``beyond``, which is charged.
        """
        form = self._form(sql, {**price, "rows": rows})
        advice: dict[str, Any] = json.loads(self._send("POST", f"{self._place}/advise", form)[0])
        return advice

    def query(
        self,
        sql: str | exp.Select,
        *,
        key: str | None = None,
        time_limit: float | None = None,
        **price: Any,
    ) -> Answer:
        """Returns the noisy answer to a question, charged to the account (``Session.query``).

        ``key`` is an idempotency key (default: a new one).

        Raises:
            SfumatoError: as ``Session.query``.
        """
        form = self._form(sql, price)
        if time_limit is not None:
            form["time_limit"] = time_limit
        body, is_recalled = self._charged("query", form, key or secrets.token_hex(16))
        return Answer(body, recalled=is_recalled)

    def diagnose(self, sql: str | exp.Select, **price: Any) -> dict[str, Any]:
        """Returns how much clipping and bounding change an answer (``Session.diagnose``); charged.

        Raises:
            SfumatoError: as ``Session.diagnose``.
        """
        body, _ = self._charged("diagnose", self._form(sql, price))
        return cast(dict[str, Any], json.loads(body))

    def marginals(
        self,
        table: str,
        cliques: Sequence[Sequence[str]],
        *,
        preview: bool = False,
        key: str | None = None,
        time_limit: float | None = None,
        **price: Any,
    ) -> dict[str, Any]:
        """Returns noisy marginals (``Marginals.to_json``); with ``preview`` only cost and error.

        Raises:
            SfumatoError: as ``Session.marginals``.
        """
        form = {**self._priced(price), "table": table, "cliques": [*map(list, cliques)]}
        if time_limit is not None:
            form["time_limit"] = time_limit
        if preview:
            return self._previewed("marginals", form)
        body, _ = self._charged("marginals", form, key or secrets.token_hex(16))
        return cast(dict[str, Any], json.loads(body))

    def publish(
        self,
        questions: Mapping[str, str],
        *,
        preview: bool = False,
        weights: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
        **price: Any,
    ) -> dict[str, Any]:
        """Returns the answers, by name, to questions that are planned together (``Session.plan``).

        With ``preview`` their cost and their errors, free.

        Raises:
            SfumatoError: as ``Session.plan`` and ``Publication.run``.
        """
        form = {**self._priced(price), "questions": dict(questions)}
        if weights is not None:
            form["weights"] = {name: _number("weights", value) for name, value in weights.items()}
        if sizes is not None:
            form["sizes"] = dict(sizes)
        if preview:
            return self._previewed("publish", form)
        body, is_recalled = self._charged("publish", form)
        answers = {}
        for name, answer in json.loads(body)["answers"].items():
            # the bytes that the ledger has
            answers[name] = self.answer(answer["charge_id"])
            answers[name].recalled = is_recalled
        return answers

    def run(self, section: str, name: str, *, preview: bool = False) -> Any:
        """Computes a release that the owner's file declares, for a charge; returns JSON or bytes.

        ``section`` is synopses, census, models, synthetic or mining. With ``preview`` a dictionary
        of its cost and its plan, free.

        Raises:
            NotVisible: the file declares no such thing.
            SfumatoError: as the function of its kind.
        """
        path, form = f"run/{quote(section, safe='')}/{quote(name, safe='')}", self._priced({})
        return self._previewed(path, form) if preview else self._charged(path, form)[0]

    def _previewed(self, path: str, form: Mapping[str, Any]) -> dict[str, Any]:
        whole = {**form, "preview": True}
        preview: dict[str, Any] = json.loads(self._send("POST", f"{self._place}/{path}", whole)[0])
        return preview

    def _charged(
        self, path: str, form: Mapping[str, Any], key: str | None = None
    ) -> tuple[bytes, bool]:
        """What a charged question replies, and whether it was stored; waits as long as it takes.

        A job whose result is gone is asked for again only where that pays nothing twice.
        """
        for _ in range(_TRIES):
            body, headers, status = self._send("POST", f"{self._place}/{path}", form, key)
            try:
                while status == 202:
                    place = f"/v1/jobs/{json.loads(body)['job']}/result?wait=30"
                    body, headers, status = self._send("GET", place)
            except ResultDropped:
                continue
            except NotVisible:
                if key is None:
                    raise Failed(
                        "The service has started anew meanwhile, and knows no such question.",
                        remedy="See answers(): what was answered is stored, and free; what was cut "
                        "off may be paid, and would be paid again.",
                    ) from None
                continue
            return body, headers.get("sfumato-recalled") == "true"
        raise Failed(
            "The question was asked again and again, and its result was gone each time.",
            remedy="What was answered is stored: ask again when fewer questions of yours run.",
        )

    def table(self, name: str) -> Frame:
        """Returns a builder of a question on a table, without SQL, as ``Session.table`` does.

        Raises:
            UnknownName: there is no such table.
        """
        declared = json.loads(self._send("GET", self._place)[0])["tables"]
        columns = tuple(
            (table["name"], tuple(column["name"] for column in table["columns"]))
            for table in declared
        )
        if name not in dict(columns):
            raise UnknownName(f"No table {shown(name)}.", allowed=", ".join(dict(columns)))
        return frame(name, self.query, cast(Any, self.preview), columns)

    @property
    def budget(self) -> dict[str, Any]:
        """The account's limit and spending (``own``), and what it can still pay (``left``)."""
        options = urlencode({"purpose": self.purpose})
        budget: dict[str, Any] = json.loads(self._send("GET", f"{self._place}/budget?{options}")[0])
        return budget

    def answers(self, *, before: int = 0, limit: int = 50) -> list[dict[str, Any]]:
        """Returns the account's newest answers: their entry numbers, times, charges, statements."""
        options = urlencode({"purpose": self.purpose, "before": before, "limit": limit})
        body, _, _ = self._send("GET", f"{self._place}/answers?{options}")
        answers: list[dict[str, Any]] = json.loads(body)
        return answers

    def answer(self, charge: str) -> Answer:
        """Returns the stored answer that a charge (its id) paid for; free.

        Raises:
            NotVisible: this account has none.
        """
        body, _, _ = self._send("GET", f"{self._place}/answers/{quote(charge, safe='')}")
        return Answer(body, recalled=True)

    def chart(self, charge: str) -> str:
        """Returns a chart of the stored answer that a charge paid for, as SVG; free.

        Raises:
            NotVisible: this account has none.
            WrongUse: the answer has no number.
        """
        body, _, _ = self._send("GET", f"{self._place}/answers/{quote(charge, safe='')}.svg")
        return body.decode()

    def dummy(self, table: str, *, rows: int = 100, seed: int = 0) -> "pyarrow.Table":
        """Returns made-up rows of a table, generated from its declarations alone; free.

        Raises:
            NotVisible: there is no such table.
        """
        parquet = import_module("pyarrow.parquet")
        options = urlencode({"rows": rows, "seed": seed})
        path = f"{self._place}/dummy/{quote(table, safe='')}.parquet?{options}"
        return cast("pyarrow.Table", parquet.read_table(BytesIO(self._send("GET", path)[0])))

    def request(self, *, epsilon: Any, reason: str, delta: Any = None) -> dict[str, Any]:
        """Sends the owner a request to set the account's limit to this total; returns it."""
        form = {"purpose": self.purpose, "reason": reason, "epsilon": _number("epsilon", epsilon)}
        if delta is not None:
            form["delta"] = _number("delta", delta)
        made: dict[str, Any] = json.loads(self._send("POST", f"{self._place}/requests", form)[0])
        return made

    @property
    def _place(self) -> str:
        return f"/v1/datasets/{quote(self.dataset, safe='')}"

    def _form(self, sql: str | exp.Select, price: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a question."""
        text = sql if isinstance(sql, str) else sql.sql(dialect="duckdb")
        return {**self._priced(price), "sql": text}

    def _priced(self, price: Mapping[str, Any]) -> dict[str, Any]:
        """The purpose and the price of a body; a number is sent as a text of all its digits."""
        form: dict[str, Any] = {"purpose": self.purpose}
        for name, value in price.items():
            if value is None or value is Values.TABLE:
                continue
            if name in _NUMBERS:
                form[name] = _number(name, value)
            elif name == "error":
                form[name] = _error(value)
            elif value is Clipped:
                form[name] = "clipped"
            else:
                form[name] = value
        return form

    def _send(
        self, method: str, path: str, form: Mapping[str, Any] | None = None, key: str | None = None
    ) -> tuple[bytes, dict[str, str], int]:
        """Sends a request, again if it was lost; a question only under its key.

        Raises:
            SfumatoError: the problem that the service answered, or no answer came.
        """
        headers = {"Authorization": f"Bearer {self._token}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        body = None if form is None else json.dumps(form, default=str).encode()
        # a free POST changes nothing, and a request for a limit would stand twice
        is_free = path.endswith(("/preview", "/advise")) or bool(form and form.get("preview"))
        may_repeat = method == "GET" or key is not None or is_free
        pause = 0.2
        for again in range(_TRIES):
            is_last = again == _TRIES - 1 or not may_repeat
            try:
                content, answered, status = self._once(method, path, body, headers)
            except (OSError, HTTPException) as error:
                if is_last:
                    raise Failed(
                        f"The service at {self._shown} did not answer ({type(error).__name__}).",
                        remedy="Ask again with the same key: it is paid once.",
                    ) from None
            else:
                if status < 400:
                    return content, answered, status
                if is_last or status not in _AGAIN:
                    raise error_of(content, status)
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[bytes, dict[str, str], int]:
        kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=_TIMEOUT)
        try:
            connection.request(method, self._below + path, body, dict(headers))
            response = connection.getresponse()
            answered = {name.lower(): value for name, value in response.getheaders()}
            return response.read(), answered, response.status
        finally:
            connection.close()

    def __repr__(self) -> str:
        return f"Remote({self.dataset!r} for {self.purpose!r} at {self._shown})"


def _number(name: str, value: Any) -> str:
    """A number as a decimal with all its digits.

    >>> _number("epsilon", 0.1)
    '0.1'
    """
    return decimal_text(to_fraction(name, value))


def _error(value: Any) -> Any:
    if isinstance(value, OnAverage):
        return {"on_average": _error(value.error)}
    return value if isinstance(value, str) else _number("error", value)
