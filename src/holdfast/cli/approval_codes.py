"""Derives the short codes by which a person names what a command showed: the approval code of a whole, one for each hunk.

An agent chooses the text, so it could try texts until the hash of another one begins alike. The codes are keyed with
`person.key`, which no agent can read: it cannot compute a single one.
"""

import base64
import hmac

from holdfast.cli.startup import open_state_folder
from holdfast.errors import Conflict
from holdfast.transport.state_folder import PERSON_KEY

_CODE_CHARS = 8
_HUNK_CODE_CHARS = 6


class ApprovalCodes:
    """The codes of one review or plan, named by its id and the hash of everything that was shown of it."""

    def __init__(self, subject_id: str, shown_hash: str) -> None:
        self._key = bytes.fromhex(open_state_folder().key(PERSON_KEY))
        self._subject_id = subject_id
        self._shown_hash = shown_hash

    @property
    def code(self) -> str:
        """Return the approval code: it differs as soon as anything differs that was shown."""
        return self._derive("approve", self._shown_hash)[:_CODE_CHARS]

    def hunk_code(self, hunk_hash: str) -> str:
        """Return the code of one hunk, which stays the same whatever happens to the others."""
        return self._derive("hunk", hunk_hash)[:_HUNK_CODE_CHARS]

    def check(self, code: str, show_command: str) -> None:
        """Raise Conflict unless this is the code of what is there at this moment."""
        if not hmac.compare_digest(code.lower().encode("utf-8", "replace"), self.code.encode()):
            raise Conflict(
                f"The code {code!r} does not fit: what it named has changed since you looked, or it is mistyped. "
                f"Nothing was approved. Look again: {show_command}"
            )

    def _derive(self, purpose: str, content_hash: str) -> str:
        message = f"holdfast {purpose} code\0{self._subject_id}\0{content_hash}"
        return base64.b32encode(hmac.digest(self._key, message.encode(), "sha256")).decode().lower()
