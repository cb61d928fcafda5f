"""Server-sent events, as they come in: bytes to the data of each event, of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

from robustrag_integrations.errors import ModelError


class Events:
    """The `data` of the events in a stream of bytes; comments and other fields are passed over.

    Args:
        largest: bytes of one event.

    Attributes:
        ended: whether the event came that ends the stream.
    """

    def __init__(self, largest: int) -> None:
        self.ended = False
        self._largest = largest
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0  # of the data so far

    def read(self, piece: bytes) -> Iterator[bytes]:
        """The events that this piece completes.

        Raises:
            ModelError: an event is too large.
        """
        for line in piece.splitlines(keepends=True):
            self._line += line
            if self._size + len(self._line) > self._largest:
                raise ModelError(f"an event of the server's stream is larger than {self._largest:,} bytes")
            if line.endswith((b"\n", b"\r")):
                yield from self._take()

    def rest(self) -> Iterator[bytes]:
        """The event that the end of the stream completes, if there is one."""
        yield from self._take()
        yield from self._take()

    def _take(self) -> Iterator[bytes]:
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        if line.startswith(b"data:"):
            self._size += len(line)
            self._data.append(line[5:].strip())
        elif not line:
            data, self._data, self._size = b"\n".join(self._data), [], 0
            if data.startswith(b"[DONE]"):
                self.ended = True
            elif data and not self.ended:
                yield data
