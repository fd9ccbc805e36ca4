"""What is counted and measured. The base class counts nothing; adapters turn the same calls into a format for scraping."""

from holdfast.observe.model import CallStatus


class Metrics:
    """Takes counts and measurements from everywhere in the server. Its methods never raise, never wait, and may be called
    from any thread.

    No label ever holds a tenant, a path, a project or anything else that a caller chose.
    """

    def call_began(self) -> None:
        """A tool call was taken up."""

    def call_ended(self, tool: str, status: CallStatus, code: str, duration_ms: float) -> None:
        """A tool call ended, after that long; `code` is the error's."""

    def calls_dropped(self, count: int) -> None:
        """So many calls could not be written to the call log."""
