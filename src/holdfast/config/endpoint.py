"""Pure: what an address of a model behind HTTP must be; what is wrong with one is said without a password in it."""

from urllib.parse import urlsplit

_EXPECTED = "an endpoint is http://HOST/PATH or https://HOST/PATH"


def endpoint_fault(url: str) -> str | None:
    """Return what is wrong with an address, None when a request can be sent there."""
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f"{_EXPECTED}, with a port up to 65535"
    if parts.username is not None or parts.password is not None:
        return f"{_EXPECTED}, without a password"
    if not is_sound or parts.fragment:
        return f"{_EXPECTED}: {url!r:.200}"
    return None
