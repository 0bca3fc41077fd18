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

import functools
import hmac
import socket
import webbrowser
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from ..._random import token
from ...accounting import extremes_text
from . import forms
from .steps import STEPS, Wizard

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
}
_HTML = "text/html; charset=utf-8"
# Bytes that a form may have.
_MOST = 1 << 25
# Seconds that an answer waits for work before it says that the work goes on.
_PATIENCE = 1.0


class Answer(NamedTuple):
    """What a request gets."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Blanks(dict[str, str]):
    """What was typed; nothing where there is nothing."""

    def __missing__(self, key: str) -> str:
        return ""


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

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Answer:
        """The answer to a request that may come from anybody."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return _plain(403, "This wizard answers on its own machine only.")
        _, given, *rest = [*path.split("/"), ""]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return _plain(404, "Open the address that the wizard printed where it was started.")
        name, *more = [each for each in rest if each] or [""]
        if name == "style.css" and method == "GET":
            style = (_PAGES / name).read_bytes()
            return Answer(200, {**_HEADERS, "Content-Type": "text/css"}, style)
        if name == "file" and more and method == "GET":
            return self._file(more[0])
        if method == "POST" and name in STEPS:
            if headers.get("origin") != f"http://{host}":
                return _plain(403, "Forms are taken from the pages of this wizard only.")
            pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
            return self._take(name, dict(pairs))
        if method != "GET" or name not in ("", *STEPS):
            return _plain(404, "There is no such page.")
        if not self.wizard.settle(_PATIENCE):
            # By a header, so that no page needs a script.
            return self._page("working.html", 200, {"Refresh": "1"}, step=self.wizard.step)
        landed, self.wizard.landed = self.wizard.landed, ""
        if landed and landed != name:
            return self._to(landed)
        shown = name in list(STEPS)[: self.wizard.reached + 1]
        if not shown and not (name == "result" and self.wizard.made):
            return self._to(self.wizard.step)
        return self._page(f"{name}.html", 200, {}, step=name)

    def _take(self, step: str, form: dict[str, str]) -> Answer:
        with self.wizard.turn:
            following = self.wizard.take(step, form)
        if following is None:
            return self._page(f"{step}.html", 422, {}, step=step)
        # Whoever asks next waits for work that goes on, and is led to where it leads.
        return self._to(following)

    def _to(self, step: str) -> Answer:
        return Answer(303, {**_HEADERS, "Location": f"/{self.token}/{step}"}, b"")

    def _page(self, template: str, status: int, headers: dict[str, str], *, step: str) -> Answer:
        made = self.wizard
        # The page of the table says what is wrong with its first line.
        header = made.header if step == "table" else []
        text = _templates().get_template(template).render(
            w=made, step=step, steps=STEPS, root=f"/{self.token}/", header=header,
            typed=_Blanks(made.typed[step]),
            wrong=_Blanks(made.wrong if made.wrong_at == step else {}),
        )  # fmt: skip
        kind = {"Content-Type": _HTML, "Content-Security-Policy": _POLICY}
        return Answer(status, {**_HEADERS, **kind, **headers}, text.encode("utf-8", "replace"))

    def _file(self, kind: str) -> Answer:
        """A file of the release that was made."""
        made = self.wizard.made
        path = made["files"]._asdict().get(kind) if made else None
        if path is None or not path.is_file():
            return _plain(404, "There is no such file.")
        if kind == "page":
            shown = {"Content-Type": _HTML, "Content-Security-Policy": _PUBLISHED}
        else:
            saved = f"attachment; filename*=UTF-8''{quote(path.name)}"
            shown = {"Content-Type": "application/octet-stream", "Content-Disposition": saved}
        return Answer(200, {**_HEADERS, **shown}, path.read_bytes())


def _plain(status: int, text: str) -> Answer:
    kind = {"Content-Type": "text/plain; charset=utf-8", "Content-Security-Policy": _POLICY}
    return Answer(status, {**_HEADERS, **kind}, text.encode())


@functools.cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(_PAGES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.globals.update(
        kinds=_Blanks(forms.KINDS), parts=forms.PARTS,
        blanks=_Blanks(), extremes=extremes_text,
        shell=forms.script, python=lambda value: repr(str(value)),
        pairs=lambda names: [(name, name) for name in names],
        bar=lambda value: f"\u00b1 {value:,.3g}" if value < 1000 else f"\u00b1 {value:,.0f}",
    )  # fmt: skip
    return made


def application(pages: Pages) -> Any:
    """The pages as an application of Starlette."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def respond(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST:
                return Response("This form is too long.", 413, dict(_HEADERS))
        given = (request.method, request.url.path, request.headers, bytes(body))
        found = await run_in_threadpool(pages.answer, *given)
        return Response(found.body, found.status, found.headers)

    return Starlette(routes=[Route("/{path:path}", respond, methods=["GET", "POST"])])


def wizard(options: Namespace) -> int:
    """Serve the pages until Ctrl-C."""
    try:
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ValueError(
            f"The wizard needs {error.name}: install it with `pip install 'skdp[wizard]'`."
        ) from None
    with open(options.data, "rb"):
        pass  # raises what files raise, with the name of the file
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", options.port))
    pages = Pages(Wizard(options), listening.getsockname()[1])
    print(f"The wizard is at {pages.address}")
    print("This address is a key: pass it to nobody. Ctrl-C ends it.", flush=True)
    if not options.no_browser:
        webbrowser.open(pages.address)
    config = uvicorn.Config(application(pages), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])
    return 0
