# SPDX-License-Identifier: Apache-2.0
"""``sf.remote``: asks a service as a session asks in process, with the standard library alone.

A call that is lost on its way is repeated under the same idempotency key, so it is paid once.
"""

import http.client
import json
import secrets
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from sqlglot import exp

from sfumato.errors import Failed, UnknownName, WrongUse, shown
from sfumato.exact.rational import decimal_text, to_fraction
from sfumato.metadata.clip import Clipped, Values
from sfumato.query.answer import Answer
from sfumato.query.dataframe import Frame, frame
from sfumato.query.price import OnAverage
from sfumato.web.problems import error_of

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
    """One account of a service: ``preview``, ``query``, ``table``, ``budget``, ``answers``."""

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
        """The cost and the expected errors of a question, and how often one could pay; free.

        Raises:
            SfumatoError: as ``Session.preview``.
        """
        form = self._form(sql, price)
        preview: dict[str, Any] = json.loads(self._send("POST", f"{self._place}/preview", form)[0])
        return preview

    def advise(
        self, sql: str | exp.Select, *, rows: int | None = None, **price: Any
    ) -> dict[str, Any]:
        """The expected errors of a question under other clips, costs and groupings; free.

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
        """The private answer to a question, as ``Session.query`` gives it.

        ``key`` is an idempotency key (default: a new one).

        Raises:
            SfumatoError: as ``Session.query``.
        """
        form = self._form(sql, price)
        if time_limit is not None:
            form["time_limit"] = time_limit
        return self._asked(form, key or secrets.token_hex(16))

    def _asked(self, form: Mapping[str, Any], key: str) -> Answer:
        body, headers, status = self._send("POST", f"{self._place}/query", form, key)
        if status == 202:
            return self._awaited(json.loads(body)["job"], form, key)
        return Answer(body, recalled=headers.get("sfumato-recalled") == "true")

    def _awaited(self, job: str, form: Mapping[str, Any], key: str) -> Answer:
        """The answer of a question that goes on as a job."""
        while True:
            told = json.loads(self._send("GET", f"/v1/jobs/{job}?wait=30")[0])
            if told["state"] not in ("waiting", "running"):
                break
        if told["state"] != "done":
            problem = told["problem"].encode()
            raise error_of(problem, json.loads(problem)["status"])
        # asked again, the question finds its stored answer
        return self._asked(form, key)

    def table(self, name: str) -> Frame:
        """Begins a question without SQL, as ``Session.table``.

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
        """What the account has spent (``own``) and the most that it can pay (``left``)."""
        options = urlencode({"purpose": self.purpose})
        budget: dict[str, Any] = json.loads(self._send("GET", f"{self._place}/budget?{options}")[0])
        return budget

    def answers(self, *, before: int = 0, limit: int = 50) -> list[dict[str, Any]]:
        """The newest answers of the account: number, time, charge, statement."""
        options = urlencode({"purpose": self.purpose, "before": before, "limit": limit})
        body, _, _ = self._send("GET", f"{self._place}/answers?{options}")
        answers: list[dict[str, Any]] = json.loads(body)
        return answers

    def answer(self, charge: str) -> Answer:
        """The stored answer of a charge; free.

        Raises:
            NotVisible: this account has none.
        """
        body, _, _ = self._send("GET", f"{self._place}/answers/{quote(charge, safe='')}")
        return Answer(body, recalled=True)

    def request(self, *, epsilon: Any, reason: str, delta: Any = None) -> dict[str, Any]:
        """Asks the owner for another limit: the whole limit, not an addition."""
        form = {"purpose": self.purpose, "reason": reason, "epsilon": _number("epsilon", epsilon)}
        if delta is not None:
            form["delta"] = _number("delta", delta)
        made: dict[str, Any] = json.loads(self._send("POST", f"{self._place}/requests", form)[0])
        return made

    @property
    def _place(self) -> str:
        return f"/v1/datasets/{quote(self.dataset, safe='')}"

    def _form(self, sql: str | exp.Select, price: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a question; a number is sent as a text of all its digits."""
        form: dict[str, Any] = {"purpose": self.purpose}
        form["sql"] = sql if isinstance(sql, str) else sql.sql(dialect="duckdb")
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
        may_repeat = method == "GET" or key is not None or path.endswith(("/preview", "/advise"))
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
