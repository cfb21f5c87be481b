"""Lines between the first process and each other one, by which they notice that one of them has died.

A process that waits for another's numbers on a CPU is told by its own connection that it waits in vain. On a GPU, or
where a network is cut, it would wait on. These lines carry nothing; that one has ended is all that they tell.
"""

from __future__ import annotations

import os
import secrets
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable

from calida.errors import LostProcessError

LOST = "another process of this run has ended or cannot be reached"
_GRACE = 10.0  # seconds in which whoever waits may notice by itself, clean up and say more
_KEEPING = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}  # a silent machine is given up after 30 seconds
_MEETING = 60.0


class Watch:
    """The lines of this process. While it is on, a line that breaks ends the process, which may be stuck for good."""

    def __init__(self, lines: list[socket.socket], speaks: bool, grace: float = _GRACE) -> None:
        self.on = False
        self._lines, self._speaks, self._grace = lines, speaks, grace
        for line in lines:
            line.settimeout(None)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPING.items():
                if hasattr(socket, name):
                    line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        threading.Thread(target=self._listen, name="calida watch", daemon=True).start()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for line in self._lines:
                selector.register(line, selectors.EVENT_READ)
            selector.select()  # nobody ever writes: what can be read is an end
        while True:  # in between two runs nobody waits, but whoever starts another will
            time.sleep(self._grace)
            if self.on:
                self._end()

    def _end(self) -> None:
        if self._speaks:
            print(f"calida: {LOST}; what was finished is saved", file=sys.stderr, flush=True)
        os._exit(1)


def keep_lines(rank: int, count: int, host: str, say: Callable[[bytes | None], bytes]) -> Watch:
    """Connect the first process, at `host`, with all others; `say` gives everybody what the first one says."""
    try:
        if rank:
            port, word = say(None).split()
            line = socket.create_connection((host, int(port)), _MEETING)
            line.sendall(word)
            return Watch([line], False)
        word = secrets.token_hex(16).encode()
        with socket.create_server(("", 0), backlog=count) as server:
            server.settimeout(_MEETING)
            say(b"%d %s" % (server.getsockname()[1], word))
            lines: list[socket.socket] = []
            while len(lines) < count - 1:
                line, _ = server.accept()
                line.settimeout(_MEETING)
                if line.recv(len(word), socket.MSG_WAITALL) == word:
                    lines.append(line)
                else:  # somebody else who tries ports
                    line.close()
        return Watch(lines, True)
    except OSError as error:
        raise LostProcessError(f"the first process cannot be reached at {host}: {error}") from None
