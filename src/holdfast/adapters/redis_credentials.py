"""Keeps sealed keys in Redis or Valkey, so that a worker in another process can take them."""

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
