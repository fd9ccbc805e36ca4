"""A lean load generator in a process of its own: keep-alive connections that each send the next request when answered.

    python -m benchmarks.measure.load < plan.json

The plan has `port`, `connections`, `seconds`, `most`, and `requests`, whole HTTP requests as text that are sent in turn.
It prints the times of all answers in seconds, the bytes that came, the failed ones and how long it all took.
"""

import json
import selectors
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

_CHUNK_BYTES = 1 << 18


@dataclass
class Client:
    """One connection with the answer that it waits for."""

    socket: socket.socket
    sent_at: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes) -> None:
        """Send a request and start its clock."""
        self.received.clear()
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def take(self) -> bytes | None:
        """Read what has come; return the answer when it is whole."""
        piece = self.socket.recv(_CHUNK_BYTES)
        if not piece:
            raise ConnectionError("the server hung up")
        self.received += piece
        return bytes(self.received) if _is_whole(self.received) else None


def _is_whole(received: bytearray) -> bool:
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = bytes(received[:end]).lower()
    if b"transfer-encoding: chunked" in head:
        return received.endswith(b"0\r\n\r\n")
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
    return len(received) >= end + 4 + length


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Send the requests until the time or the number is reached."""
    requests = [text.encode() for text in plan["requests"]]
    times: list[float] = []
    failed = size = sent = 0
    with selectors.DefaultSelector() as waiting:
        for _ in range(plan["connections"]):
            client = Client(socket.create_connection(("127.0.0.1", plan["port"])))
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting.register(client.socket, selectors.EVENT_READ, client)
        started_at = time.perf_counter()
        for key in waiting.get_map().values():
            key.data.send(requests[sent % len(requests)])
            sent += 1
        while waiting.get_map():
            for key, _ in waiting.select():
                client = key.data
                answer = client.take()
                if answer is None:
                    continue
                now = time.perf_counter()
                times.append(now - client.sent_at)
                size += len(answer)
                failed += b" 200 " not in answer[:16] or b'"isError":false' not in answer
                if now - started_at < plan["seconds"] and sent < plan["most"]:
                    client.send(requests[sent % len(requests)])
                    sent += 1
                else:
                    waiting.unregister(client.socket)
                    client.socket.close()
        took = time.perf_counter() - started_at
    return {"times": times, "bytes": size, "failed": failed, "seconds": took}


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)
