"""Every error a caller may see, with its code, whether a retry can help, and the exit status of a command.

HoldfastError
├── AccessDenied          outside the allowed directories
├── AlreadyExists
├── Cancelled             by the caller
├── Conflict              the file is not as the caller expected
├── Internal              an internal error of the server; the log has the details
├── InvalidArgument       wrong type, unknown argument, unknown tool
│   └── EditRejected      an edit that cannot be applied, with what to do about it
├── InvalidOffset
├── InvalidPath
├── InvalidQuery
├── IsDirectory
├── NotDirectory
├── NotEmpty
├── NotFound
├── PayloadTooLarge
├── PermissionDenied
├── QuotaExceeded
├── RateLimited           retryable
├── ResourceBusy          retryable
├── SearchBackendError    retryable
├── StorageDamaged        state of ours cannot be read or was lost
├── StorageFull           a disk is full
└── TimedOut              retryable
"""

import errno
from typing import Any, ClassVar


class HoldfastError(Exception):
    """Base of every error that may be shown to a caller; the message holds no file content."""

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def payload(self) -> dict[str, Any]:
        """Return the error in the form of a tool's answer: code, message, retryable and the details."""
        return {"code": self.code, "message": self.message, "retryable": self.retryable, **self.details}


class AccessDenied(HoldfastError):
    """A path outside the allowed directories; the text never says whether the target exists."""

    code = "ACCESS_DENIED"
    exit_status = 13

    @classmethod
    def outside(cls, path: str) -> "AccessDenied":
        """Return the error for every path outside the roots."""
        return cls(f"Access denied: {path} is outside allowed directories", path=path)


class AlreadyExists(HoldfastError):
    """The target is already there and would have been replaced."""

    code = "ALREADY_EXISTS"


class Cancelled(HoldfastError):
    """The caller cancelled the call; what was not yet done is not done."""

    code = "CANCELLED"


class Conflict(HoldfastError):
    """The file is not as the caller expected."""

    code = "CONFLICT"


class Internal(HoldfastError):
    """An internal error of the server."""

    exit_status = 70


class InvalidArgument(HoldfastError):
    """An argument of the wrong type or value, or an unknown name."""

    code = "INVALID_ARGUMENT"
    exit_status = 2


class EditRejected(InvalidArgument):
    """An edit that was not applied: error_type, a hint, and the file's text where that helps."""

    def __init__(self, error_type: str, message: str, hint: str, **details: Any) -> None:
        super().__init__(message, error=True, error_type=error_type, hint=hint, **details)


class InvalidOffset(HoldfastError):
    """An offset, length, depth or mode out of range."""

    code = "INVALID_OFFSET"
    exit_status = 2


class InvalidPath(HoldfastError):
    """A path that cannot name a file: NUL, too long, a wrong shape."""

    code = "INVALID_PATH"
    exit_status = 2


class InvalidQuery(HoldfastError):
    """A pattern, expression, query or encoding that cannot be used."""

    code = "INVALID_QUERY"
    exit_status = 2


class IsDirectory(HoldfastError):
    """A directory where a file was expected."""

    code = "IS_DIRECTORY"


class NotDirectory(HoldfastError):
    """A file where a directory was expected."""

    code = "NOT_DIRECTORY"


class NotEmpty(HoldfastError):
    """A directory that still holds something."""

    code = "NOT_EMPTY"


class NotFound(HoldfastError):
    """Nothing is there, or nothing that this caller may see."""

    code = "NOT_FOUND"

    @classmethod
    def at(cls, path: str, display_path: str = "") -> "NotFound":
        """Return the error for a path where nothing is; `display_path` is the path as a message shows it."""
        return cls(f"No such file or directory: {display_path or path}", path=path)


class PayloadTooLarge(HoldfastError):
    """More bytes than the limit allows."""

    code = "PAYLOAD_TOO_LARGE"


class PermissionDenied(HoldfastError):
    """The caller may not do this."""

    code = "PERMISSION_DENIED"
    exit_status = 13


class QuotaExceeded(HoldfastError):
    """The caller's share of the disk is used up; the message says what can be freed."""

    code = "QUOTA_EXCEEDED"


class RateLimited(HoldfastError):
    """Too many calls in too short a time."""

    code = "RATE_LIMITED"
    retryable = True
    exit_status = 75


class ResourceBusy(HoldfastError):
    """Someone else holds what the call needs; the same call may succeed later."""

    code = "RESOURCE_BUSY"
    retryable = True
    exit_status = 75


class SearchBackendError(HoldfastError):
    """The index or a model behind search did not answer."""

    code = "SEARCH_BACKEND_ERROR"
    retryable = True
    exit_status = 75


class StorageDamaged(HoldfastError):
    """State that Holdfast keeps is damaged, missing or cannot be read; the message says what to do."""

    code = "STORAGE_DAMAGED"
    exit_status = 74


class StorageFull(HoldfastError):
    """A disk is full, so nothing was changed; a retry helps only after space was freed."""

    code = "STORAGE_FULL"
    exit_status = 74


class TimedOut(HoldfastError):
    """The time limit ran out before the work was done."""

    code = "TIMEOUT"
    retryable = True
    exit_status = 75


def error_class(code: str) -> type[HoldfastError]:
    """Return the class of errors with a code, HoldfastError for a code that is not known here."""
    return {each.code: each for each in HoldfastError.__subclasses__()}.get(code, HoldfastError)


def error_from_payload(payload: dict[str, Any]) -> HoldfastError:
    """Return the error that another process answered as a payload."""
    details = {name: value for name, value in payload.items() if name not in ("code", "message", "retryable")}
    return error_class(str(payload.get("code")))(str(payload.get("message", "The call failed.")), **details)


def describe_fault(fault: Exception) -> HoldfastError:
    """Return the error that a process reports for an unexpected exception: one line, never a traceback.

    The message of an exception may hold content of files, so it is left out, but for what the system says of a path.
    """
    while isinstance(fault, ExceptionGroup):
        fault = fault.exceptions[0]
    if isinstance(fault, HoldfastError):
        return fault
    if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("A disk is full; free some space on the disk of the state folder and of your folders.")
    if isinstance(fault, OSError) and fault.strerror:
        about = f": {fault.filename!r}" if fault.filename is not None else ""
        return Internal(f"The system refused what was needed ({fault.strerror}{about}).")
    return Internal(f"An internal error: {describe_place(fault)}. Please report it.")


def describe_place(fault: BaseException, frames: int = 1) -> str:
    """Return the type of an exception and the lines that it came from, the innermost first; nothing of its message."""
    places: list[str] = []
    trace = fault.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}")
        trace = trace.tb_next
    name = type(fault).__name__
    return f"{name} at {' < '.join(reversed(places[-frames:]))}" if places else name
