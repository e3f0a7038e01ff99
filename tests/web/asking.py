"""Requests to a broker's page, as a program makes them: raw, so that a test may send what no browser would."""

import base64
import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

#: What a change needs.
CHANGE = {"Content-Type": "application/json", "X-Requested-With": "pylog"}


class Answer(NamedTuple):
    """An answer: its status, its headers by lower-case names, its body, and what that says."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        """The document that the body is."""
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """The status and the name of an error, which has a sentence, too."""
        assert self.said["message"].endswith("."), self.said
        return self.status, self.said["error"]


class Page:
    """The page of a broker, asked by one user.

    Parameters
    ----------
    url : str
        Where its HTTP server is.
    login : str
        USER:PASSWORD; empty: none.
    """

    def __init__(self, url: str, login: str = "") -> None:
        self.place = urlsplit(url).netloc
        self._basic = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else {}

    def raw(self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> Answer:
        """The answer to this very request."""
        connection = http.client.HTTPConnection(self.place, timeout=60)
        try:
            connection.request(method, path, body, {**self._basic, **(headers or {})})
            answer = connection.getresponse()
            names = {name.lower(): text for name, text in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        finally:
            connection.close()

    def get(self, *parts: str, **parameters: object) -> Answer:
        """GET /api/PARTS with parameters; `from_` stands for ``from``."""
        query = urlencode({name.rstrip("_"): value for name, value in parameters.items()})
        return self.raw("GET", path(*parts) + (f"?{query}" if query else ""))

    def change(self, *parts: str, method: str = "POST", **body: object) -> Answer:
        """POST or DELETE /api/PARTS."""
        return self.raw(method, path(*parts), CHANGE, json.dumps(body).encode())


def path(*parts: str) -> str:
    """The path of the API with these parts."""
    return "/api/" + "/".join(quote(part, safe="") for part in parts)
