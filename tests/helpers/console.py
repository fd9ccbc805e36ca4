"""A page of the console, as a browser would send its requests: cookie, second key and where it comes from."""

from dataclasses import dataclass
from typing import Any

import httpx2

from tests.helpers.doors import House

JSON = {"content-type": "application/json"}
OWN = {"sec-fetch-site": "same-origin"}


@dataclass
class Page:
    """One signed-in browser; its secrets can be read, to be misused."""

    url: str
    cookie: str
    key: str
    me: dict[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        """Return what every request of the page carries."""
        return {**JSON, **OWN, "cookie": self.cookie, "x-holdfast-key": self.key}

    def post(self, name: str, arguments: Any = None, **more: Any) -> httpx2.Response:
        """Call an entry."""
        return httpx2.post(f"{self.url}/api/{name}", headers=self.headers, json=arguments or more, timeout=30)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """Get something from the API."""
        return httpx2.get(
            f"{self.url}/api/{path}",
            headers={**self.headers, **{name.replace("_", "-"): text for name, text in headers.items()}},
            timeout=30,
        )

    def data(self, name: str, **arguments: Any) -> Any:
        """Call an entry that succeeds and return its data."""
        answer = self.post(name, **arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def text(self, name: str, **arguments: Any) -> str:
        """Call an entry that succeeds and return its text."""
        answer = self.post(name, **arguments)
        assert answer.status_code == 200, answer.text
        return "\n".join(answer.json()["text"])


def link_of(house: House) -> str:
    """Return a new link to the console."""
    ran = house.run("open", "--print")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def sign_in(house: House, **headers: str) -> Page:
    """Return a page of the person."""
    url, _, token = link_of(house).partition("/open#")
    return page_of(url, {"link": token}, **headers)


def page_of(url: str, body: dict[str, str], **headers: str) -> Page:
    """Return the page that a link or a key opens."""
    extra = {name.replace("_", "-"): text for name, text in headers.items()}
    answer = httpx2.post(f"{url}/api/session", headers={**JSON, **OWN, **extra}, json=body)
    assert answer.status_code == 200, answer.text
    cookie = answer.headers["set-cookie"].split(";")[0]
    return Page(url, cookie, answer.json()["key"], answer.json()["me"])
