"""A bell that any number of lanes wait for; a ring that comes while a lane works is not missed."""

import threading


class Bell:
    """Counts its rings: whoever knows the count from before its work learns at once that it has rung since."""

    def __init__(self) -> None:
        self._rings = 0
        self._rung = threading.Condition()

    @property
    def rings(self) -> int:
        """Return how often it has rung."""
        return self._rings

    def ring(self) -> None:
        """Wake everyone who waits."""
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, heard: int, seconds: float) -> None:
        """Wait until it has rung more often than was heard, or so long."""
        with self._rung:
            self._rung.wait_for(lambda: self._rings != heard, seconds)
