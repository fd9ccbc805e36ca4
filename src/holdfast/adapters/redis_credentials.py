"""Sealed keys in Redis or Valkey, so that a worker in another process can take them."""

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.adapters.redis import redis_client
from holdfast.credentials.sealed_keys import KeyStoreUnavailable

_Answer = TypeVar("_Answer")


class RedisKeyStore:
    """Keeps sealed keys under a prefix, each with its own time to live."""

    is_shared = True

    def __init__(self, url: str, prefix: str) -> None:
        self._client = redis_client(url)
        self._prefix = prefix

    def put(self, name: str, sealed: bytes, ttl_seconds: int) -> None:
        """Keep a sealed key for so long."""
        self._asked(lambda redis: redis.set(self._prefix + name, sealed, ex=ttl_seconds))

    def get(self, name: str) -> bytes | None:
        """Return a sealed key, None when it is not there or its time is over."""
        found = self._asked(lambda redis: redis.get(self._prefix + name))
        return bytes(found) if found is not None else None

    def drop(self, name: str) -> None:
        """Forget a sealed key."""
        self._asked(lambda redis: redis.delete(self._prefix + name))

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _asked(self, ask: Callable[[Any], _Answer]) -> _Answer:
        from redis import RedisError

        try:
            return ask(self._client)
        except (RedisError, OSError):
            raise KeyStoreUnavailable from None
