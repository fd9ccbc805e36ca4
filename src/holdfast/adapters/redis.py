"""Counts calls in Redis or Valkey, so that several servers share one limit; alone again while it does not answer."""

import logging
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from holdfast.adapters.counters import MemoryCounters, WindowCounters
from holdfast.errors import InvalidArgument

_log = logging.getLogger(__name__)

_SCHEMES: Mapping[str, str] = MappingProxyType(
    {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
)
_PREFIX = "holdfast:limits"
_PATIENCE_SECONDS = 0.5
_PAUSE_SECONDS = 2.0


class RedisCounters:
    """Counts where every server with the same REDIS_URL sees it.

    When Redis does not answer, this server counts by itself and asks again after a pause: a call is neither refused
    nor let through uncounted because of it, and waits for the time-out once in a pause at most.
    """

    is_remote = True

    def __init__(self, url: str) -> None:
        self._alone = MemoryCounters()
        self._storage = _storage(url)
        self._shared = WindowCounters(self._storage)
        self._lock = threading.Lock()
        self._silent_until = 0.0

    def hit(self, name: str, per_minute: int) -> float | None:
        """Count one call and return None, or count nothing and return the seconds until one will be admitted."""
        from redis import RedisError

        if time.monotonic() >= self._silent_until:
            try:
                wait = self._shared.hit(name, per_minute)
            except (RedisError, OSError) as error:
                self._fell_silent(error)
            else:
                self._answered()
                return wait
        return self._alone.hit(name, per_minute)

    def close(self) -> None:
        """Let go of both counters."""
        self._storage.storage.close()
        self._alone.close()

    def _fell_silent(self, error: Exception) -> None:
        with self._lock:
            was_heard = self._silent_until == 0.0
            self._silent_until = time.monotonic() + _PAUSE_SECONDS
        if was_heard:
            _log.warning("Redis does not answer (%s): this server counts calls by itself", type(error).__name__)

    def _answered(self) -> None:
        with self._lock:
            was_silent, self._silent_until = self._silent_until > 0.0, 0.0
        if was_silent:
            _log.warning("Redis answers again: calls are counted there")


def redis_fault(url: str) -> str | None:
    """Return what is wrong with the server at an address, None when it answers. InvalidArgument when it is none."""
    storage = _storage(url)
    from redis import RedisError

    try:
        storage.get_connection().ping()
    except (RedisError, OSError) as error:
        return f"it does not answer ({type(error).__name__})"
    finally:
        storage.storage.close()
    return None


def redis_client(url: str) -> Any:
    """Return a client for an address; nothing is sent yet. InvalidArgument never repeats the address."""
    address, options = _address(url)
    from redis import Redis

    try:
        return Redis.from_url(address, **options)
    except ValueError:
        raise _not_understood() from None


def _storage(url: str) -> Any:
    """Return the library's store for an address; nothing is sent yet. InvalidArgument never repeats the address."""
    address, options = _address(url)
    from limits.storage import RedisStorage

    try:
        return RedisStorage(address, key_prefix=_PREFIX, **options)
    except ValueError:
        raise _not_understood() from None


def _address(url: str) -> tuple[str, dict[str, Any]]:
    """Return an address in the words of the driver, and the options of every connection to it."""
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
        raise _not_understood() from None
    # One more try, because a pooled connection may be of a server that has been started again since.
    retry = Retry(NoBackoff(), 1)
    return address, {
        "socket_timeout": _PATIENCE_SECONDS,
        "socket_connect_timeout": _PATIENCE_SECONDS,
        "retry": retry,
    }


def _not_understood() -> InvalidArgument:
    return InvalidArgument("REDIS_URL is not an address that the Redis client understands.")
