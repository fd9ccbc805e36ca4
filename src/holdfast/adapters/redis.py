"""Counts calls and keeps sealed keys in Redis or Valkey, so that servers share one limit and workers can take the keys."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from holdfast.adapters.counters import MemoryCounters, WindowCounters
from holdfast.credentials.sealed_keys import KeyStoreUnavailable
from holdfast.errors import InvalidArgument

_Answer = TypeVar("_Answer")

_log = logging.getLogger(__name__)

_SCHEMES: Mapping[str, str] = MappingProxyType(
    {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
)
_PREFIX = "holdfast:limits"
_TIMEOUT_SECONDS = 0.5
_RETRY_PAUSE_SECONDS = 2.0


class RedisCounters:
    """Counts where every server with the same REDIS_URL sees it.

    When Redis does not answer, this server counts by itself and asks again after a pause: a call is neither refused
    nor let through uncounted because of it, and waits for the time-out once in a pause at most.
    """

    is_remote = True

    def __init__(self, url: str) -> None:
        self._fallback = MemoryCounters()
        self._storage = _open_storage(url)
        self._shared = WindowCounters(self._storage)
        self._lock = threading.Lock()
        self._retry_at = 0.0

    def hit(self, name: str, per_minute: int) -> float | None:
        """Count one call and return None, or count nothing and return the seconds until one will be admitted."""
        from redis import RedisError

        if time.monotonic() >= self._retry_at:
            try:
                wait = self._shared.hit(name, per_minute)
            except (RedisError, OSError) as error:
                self._note_failure(error)
            else:
                self._note_success()
                return wait
        return self._fallback.hit(name, per_minute)

    def close(self) -> None:
        """Close both counters."""
        self._storage.storage.close()
        self._fallback.close()

    def _note_failure(self, error: Exception) -> None:
        with self._lock:
            was_answering = self._retry_at == 0.0
            self._retry_at = time.monotonic() + _RETRY_PAUSE_SECONDS
        if was_answering:
            _log.warning("Redis does not answer (%s): this server counts calls by itself", type(error).__name__)

    def _note_success(self) -> None:
        with self._lock:
            was_failing, self._retry_at = self._retry_at > 0.0, 0.0
        if was_failing:
            _log.warning("Redis answers again: calls are counted there")


class RedisKeyStore:
    """Keeps sealed keys under a prefix, each with its own time to live."""

    is_shared = True

    def __init__(self, url: str, prefix: str) -> None:
        self._client = _open_client(url)
        self._prefix = prefix

    def put(self, name: str, sealed: bytes, ttl_seconds: int) -> None:
        """Keep a sealed key for that time."""
        self._run(lambda redis: redis.set(self._prefix + name, sealed, ex=ttl_seconds))

    def get(self, name: str) -> bytes | None:
        """Return a sealed key, None when there is none or it has expired."""
        sealed = self._run(lambda redis: redis.get(self._prefix + name))
        return bytes(sealed) if sealed is not None else None

    def drop(self, name: str) -> None:
        """Drop a sealed key."""
        self._run(lambda redis: redis.delete(self._prefix + name))

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _run(self, command: Callable[[Any], _Answer]) -> _Answer:
        from redis import RedisError

        try:
            return command(self._client)
        except (RedisError, OSError):
            raise KeyStoreUnavailable from None


def redis_fault(url: str) -> str | None:
    """Return why Redis does not answer at an address, None when it does. InvalidArgument when the address is invalid."""
    storage = _open_storage(url)
    from redis import RedisError

    try:
        storage.get_connection().ping()
    except (RedisError, OSError) as error:
        return f"it does not answer ({type(error).__name__})"
    finally:
        storage.storage.close()
    return None


def _open_client(url: str) -> Any:
    """Return a client for an address; nothing is sent yet. InvalidArgument never repeats the address."""
    address, options = _parse_url(url)
    from redis import Redis

    try:
        return Redis.from_url(address, **options)
    except ValueError:
        raise _invalid_url() from None


def _open_storage(url: str) -> Any:
    """Return the library's store for an address; nothing is sent yet. InvalidArgument never repeats the address."""
    address, options = _parse_url(url)
    from limits.storage import RedisStorage

    try:
        return RedisStorage(address, key_prefix=_PREFIX, **options)
    except ValueError:
        raise _invalid_url() from None


def _parse_url(url: str) -> tuple[str, dict[str, Any]]:
    """Return the address in the form of the driver, and the options for every connection to it."""
    scheme, separator, rest = url.partition("://")
    if scheme not in _SCHEMES or not separator:
        raise InvalidArgument(f"REDIS_URL must begin with one of {', '.join(f'{name}://' for name in _SCHEMES)}")
    try:
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        raise InvalidArgument("REDIS_URL is set and its driver is missing: pip install 'holdfast[redis]'") from None
    address = f"{_SCHEMES[scheme]}://{rest}"
    try:
        _ = urlsplit(address).port
    except ValueError:
        raise _invalid_url() from None
    # One retry, because a pooled connection may belong to a server that has been restarted since.
    retry = Retry(NoBackoff(), 1)
    return address, {
        "socket_timeout": _TIMEOUT_SECONDS,
        "socket_connect_timeout": _TIMEOUT_SECONDS,
        "retry": retry,
    }


def _invalid_url() -> InvalidArgument:
    return InvalidArgument("REDIS_URL is not an address that the Redis client understands.")
