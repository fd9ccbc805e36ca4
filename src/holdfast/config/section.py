"""The base of every section of the settings, and the check of addresses that sections share."""

from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

_EXPECTED = "an endpoint is http://HOST/PATH or https://HOST/PATH"


def endpoint_fault(url: str) -> str | None:
    """Return what is wrong with an address, None when a request can be sent there."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f"{_EXPECTED}, with a port up to 65535"
    if parts.username is not None or parts.password is not None:
        return f"{_EXPECTED}, without a password"
    if not is_valid or parts.fragment:
        return f"{_EXPECTED}: {url!r:.200}"
    return None


class Section(BaseModel):
    """Base of every section: unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
