"""A web server on this machine that serves a few bytes and can be told to misbehave."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Served(NamedTuple):
    path: str
    range: str | None
    sent: int


@dataclass
class Loopback:
    """Files by path, and the mischief: each entry of `cuts` ends one answer after so many bytes, -1 even before it."""

    files: dict[str, bytes] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    knows_ranges: bool = True
    stall_after: int | None = None
    log: list[Served] = field(default_factory=list)
    awake: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Loopback:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.awake.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{path}"


def _handler(web: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            asked = self.headers.get("Range")
            if path not in web.files:
                web.log.append(Served(path, asked, 0))
                self.send_error(404)
                return
            content = web.files[path]
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and web.knows_ranges else 0
            if start >= len(content) > 0:
                web.log.append(Served(path, asked, 0))
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = content[start:]
            cut = web.cuts.pop(0) if web.cuts else len(body)
            sent = body[: max(cut, 0)]
            web.log.append(Served(path, asked, len(sent)))
            if cut < 0:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked may have given up or been killed
                if web.stall_after is not None and not web.awake.is_set():
                    self.wfile.write(sent[: web.stall_after])
                    web.awake.wait(20)
                    sent = sent[web.stall_after :]
                self.wfile.write(sent)
                if cut < len(body):
                    self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
