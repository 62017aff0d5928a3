"""A web server on this machine that can be told to misbehave."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """Files by name, how to serve them, and what was asked for."""

    files: dict[str, bytes]
    cut_after: list[int] = field(default_factory=list)
    """Bytes sent before the connection is cut, one number for each of the first answers."""
    ignores_range: bool = False
    wrong_range: bool = False
    errors: list[int] = field(default_factory=list)
    """Status of the first answers."""
    asked: list[str] = field(default_factory=list)
    """The Range of every request, '' where there is none."""
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self):
        site, name = self.site, self.path.lstrip("/")
        asked = self.headers.get("Range", "")
        site.asked.append(asked)
        if site.errors:
            return self.send_error(site.errors.pop(0))
        if name not in site.files:
            return self.send_error(404)
        content = site.files[name]
        start = 0 if site.ignores_range or not asked else int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
        if start and start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            return self.end_headers()
        return self.send_part(content, start)

    def send_part(self, content: bytes, start: int):
        said = start + 1 if self.site.wrong_range else start
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {said}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        length = self.site.cut_after.pop(0) if self.site.cut_after else len(content)
        self.wfile.write(content[start : start + length])

    def log_message(self, *args):
        """Stays silent."""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    handler = type("SiteHandler", (Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
