"""The pages on the loopback address, for one person.

Whoever may open a page may spend the budget, so each request must show that it comes from the
person at this machine: the address holds a text that nobody can guess, which is printed where the
wizard was started; the server listens on 127.0.0.1 alone; the header ``Host`` must name it, so that
no name of a stranger's site that resolves to this machine gets an answer; what is sent must come
from a page of the wizard itself (``Origin``). Pages hold no script, and forbid all by their policy,
so that names of columns, which anybody may have chosen, are text whatever they are. No field names
a file to read: the table, and a declaration to begin with, are arguments of the command.
"""

from __future__ import annotations

import hmac
import socket
import webbrowser
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, quote

try:
    import uvicorn
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise ImportError(
        f"The wizard needs {error.name}: install it with `pip install 'skdp[app]'`."
    ) from None

from ..._random import token
from ...accounting import extremes_text
from .steps import FIELDS, STEPS, Wizard, suggested, worded

Given = Mapping[str, str]
_PAGES = Path(__file__).parent / "pages"
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# A released page has its own script. Here it runs as if it came from nowhere.
_PUBLISHED = (
    "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; img-src data: blob:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    # With no referrer at all, browsers would not say either where a form comes from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": _POLICY,
}
# Bytes that a form may have.
_MOST = 1 << 25
# Seconds that an answer waits for work before it says that the work goes on.
_PATIENCE = 1.0


_TEMPLATES = Environment(
    loader=FileSystemLoader(_PAGES), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
_TEMPLATES.globals |= {"extremes": extremes_text, "FIELDS": FIELDS, "steps": STEPS}
_TEMPLATES.globals |= {"suggested": suggested, "worded": worded}


class Pages:
    """Answers to requests, whatever server passes them on.

    Parameters
    ----------
    wizard : Wizard
    port : int
        At which the server listens.
    """

    def __init__(self, wizard: Wizard, port: int) -> None:
        self.wizard, self.token = wizard, token()
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.address = f"http://127.0.0.1:{port}/{self.token}/"

    def answer(self, method: str, path: str, headers: Given, body: bytes = b"") -> Response:
        """The answer to a request that may come from anybody."""
        found = self._answer(method, path, headers, body)
        for name, text in _HEADERS.items():
            found.headers.setdefault(name, text)
        return found

    def _answer(self, method: str, path: str, headers: Given, body: bytes) -> Response:
        host = headers.get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("This wizard answers on its own machine only.", 403)
        _, given, name, end, *_ = [*path.split("/"), "", "", ""]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return PlainTextResponse("Open the address that the wizard printed.", 404)
        if len(body) > _MOST:
            return PlainTextResponse("This form is too long.", 413)
        if method == "POST" and name in STEPS[:-1]:
            if headers.get("origin") != f"http://{host}":
                said = "Forms are taken from the pages of this wizard only."
                return PlainTextResponse(said, 403)
            pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
            return self._taken(name, dict(pairs))
        if method == "GET" and name == "style.css":
            return Response((_PAGES / name).read_bytes(), media_type="text/css")
        if method == "GET" and name == "file":
            return self._file(end)
        if method == "GET" and name in ("", "working", *STEPS):
            return self._shown(name)
        return PlainTextResponse("There is no such page.", 404)

    def _taken(self, step: str, form: dict[str, str]) -> Response:
        wizard = self.wizard
        if not wizard.take(step, form):
            return self._to("")
        if not wizard.idle(_PATIENCE):
            return self._to("working")
        return self._page(step, 422) if wizard.wrong else self._to(wizard.landed)

    def _shown(self, name: str) -> Response:
        wizard = self.wizard
        if not wizard.idle(_PATIENCE):
            return self._page("working") if name == "working" else self._to("working")
        if name == "working":
            return self._to(wizard.landed)
        return self._page(name) if name in wizard.shown else self._to(STEPS[wizard.reached])

    def _to(self, step: str) -> Response:
        return RedirectResponse(f"/{self.token}/{step}", 303)

    def _page(self, name: str, status: int = 200) -> Response:
        wizard = self.wizard
        step = wizard.taken if name == "working" else name
        wrong = wizard.wrong if wizard.taken == step else {}
        text = _TEMPLATES.get_template(f"{name}.html").render(
            w=wizard,
            step=step,
            root=f"/{self.token}/",
            typed=defaultdict(str, wizard.typed[step]),
            wrong=defaultdict(str, {field: worded(said) for field, said in wrong.items()}),
        )
        # By a header, so that no page needs a script.
        again = {"Refresh": "1"} if name == "working" else None
        return HTMLResponse(text.encode("utf-8", "replace"), status, again)

    def _file(self, end: str) -> Response:
        """A file of the release that was made."""
        path = self.wizard.made and self.wizard.made["files"].get(end)
        if not path or not path.is_file():
            return PlainTextResponse("There is no such file.", 404)
        if end == "html":
            return HTMLResponse(path.read_bytes(), 200, {"Content-Security-Policy": _PUBLISHED})
        saved = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.name)}"}
        return Response(path.read_bytes(), 200, saved, "application/octet-stream")


def application(pages: Pages) -> Starlette:
    """The pages as an application of Starlette."""

    async def respond(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST:
                break
        given = (request.method, request.url.path, request.headers, bytes(body))
        return await run_in_threadpool(pages.answer, *given)

    return Starlette(routes=[Route("/{path:path}", respond, methods=["GET", "POST"])])


def wizard(options: Namespace) -> int:
    """Serve the pages until Ctrl-C."""
    # Raises what files raise, with the name of the file.
    Path(options.data).stat()
    listening = socket.create_server(("127.0.0.1", options.port))
    pages = Pages(Wizard(options), listening.getsockname()[1])
    print(f"The wizard is at {pages.address}")
    print("This address is a key: pass it to nobody. Ctrl-C ends it.", flush=True)
    if not options.no_browser:
        webbrowser.open(pages.address)
    config = uvicorn.Config(application(pages), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])
    return 0
