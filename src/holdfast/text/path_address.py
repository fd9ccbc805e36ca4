"""Pure: the address of a path in a text: the path itself, or a `file:` URI where a name in it is not UTF-8.

Text in JSON cannot hold such a name, and a person must still be able to open, rename and delete the file. An address is
absolute and begins with `/` or `file:///`, so that neither form can be taken for the other.
"""

from urllib.parse import quote_from_bytes, unquote_to_bytes

from holdfast.text.decode import has_lone_surrogate

_SCHEME = "file://"


def address_of(path: str) -> str:
    """Return the address of an absolute path as Python holds it, with a surrogate for each byte that is not UTF-8."""
    if not has_lone_surrogate(path):
        return path
    return _SCHEME + quote_from_bytes(path.encode("utf-8", "surrogateescape"))


def path_at(address: str) -> str:
    """Return the path at an address. Anything but a `file:` URI is returned as it is."""
    if not address.startswith(f"{_SCHEME}/"):
        return address
    return unquote_to_bytes(address[len(_SCHEME) :]).decode("utf-8", "surrogateescape")
