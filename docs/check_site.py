"""Check the built documentation: ``python docs/check_site.py docs/_build/html [--browser]``.

Checks that the targets of all links and pictures within the site exist, anchors included, and that
every picture has an alternative text. With ``--browser``, headless Chromium also opens every page
at the width of a phone: no page may be wider than the screen, break a word of a table, write an
error to the console or request anything from another server, and the search must find pages. The
contents of the guide must fit on one screen of a desk.
Screenshots of some pages, light and dark, are left beside the site. Needs ``playwright`` and an
installed Chromium; without Chromium it prints a message and skips this part.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

PHONE, DESK = (400, 800), (1400, 900)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CONTENTS = "user_guide/index.html"
# Pages of which screenshots are taken.
SHOWN = [
    "index.html",
    CONTENTS,
    "start.html",
    "notebooks/publish.html",
    "choose.html",
    "corrections.html",
    "comparison.html",
    "reproduction.html",
    "user_guide/choosing_epsilon.html",
    "user_guide/threat_model.html",
    "user_guide/from_other_libraries.html",
    "user_guide/marginals.html",
    "user_guide/cubes.html",
    "user_guide/kmeans.html",
    "auto_examples/index.html",
    "auto_examples/quickstart.html",
    "api/index.html",
]
# Words of tables that stand on more than one line, and titles and names wider than the page.
BROKEN = r"""() => {
    const broken = [];
    for (const title of document.querySelectorAll(".bd-article h1"))
        if (title.scrollWidth > title.clientWidth) broken.push(title.innerText);
    for (const name of document.querySelectorAll(".bd-article :is(p, li, dd, dt) code"))
        if (!name.closest("table, pre") && name.getBoundingClientRect().right > innerWidth)
            broken.push(name.innerText);
    for (const cell of document.querySelectorAll(".bd-article :is(td, th)")) {
        const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        for (let text = walk.nextNode(); text; text = walk.nextNode()) {
            if (text.parentElement.closest("code, .autosummary")) continue;
            for (const word of text.data.matchAll(/[^\s\-\/\u200b]+/g)) {
                const range = document.createRange();
                range.setStart(text, word.index);
                range.setEnd(text, word.index + word[0].length);
                const lines = [...range.getClientRects()].filter(box => box.width > 0);
                if (new Set(lines.map(box => Math.round(box.top / 4))).size > 1)
                    broken.push(word[0]);
            }
        }
    }
    return broken;
}"""
# Words, and a page that the search must find by them.
SEARCHES = {
    "kd-tree": "boxes",
    "noisy_max": "skdp.mechanisms",
    "GDPR": "legal",
    "SDV": "from_other_libraries",
    "dates": "columns",
    "under a condition": "synthetic_rows",
}


class Page(HTMLParser):
    """Links, anchors and pictures of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.pictures = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Collect the links, pictures and anchors of the tag."""
        attrs = dict(attrs)
        self.anchors.update(attrs[key] for key in ("id", "name") if attrs.get(key))
        for key in ("href", "src"):
            if attrs.get(key):
                self.links.append(attrs[key])
        if tag == "img":
            self.pictures.append((attrs.get("src", ""), attrs.get("alt")))


def pages_of(root):
    """Paths of the pages; a template of the theme among the static files is left out."""
    return sorted(
        path for path in root.rglob("*.html") if path.relative_to(root).parts[0] != "_static"
    )


def check_pages(root):
    """One sentence for every broken link and every picture without a text."""
    root = Path(root).resolve()
    pages = {path: Page(path) for path in pages_of(root)}
    if not pages:
        return [f"{root} contains no pages: build them first."]
    problems = []
    for path, page in pages.items():
        here = path.relative_to(root)
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                problems.append(f"{here}: nothing is at {link}")
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].anchors:
                    problems.append(f"{here}: no such place as {link}")
        for source, text in page.pictures:
            if text == "":
                continue  # marked as decoration: the logo, thumbnails beside their titles
            # sphinx-gallery falls back to the name of the example.
            name = Path(source).stem.removeprefix("sphx_glr_").rsplit("_", 1)[0]
            if text is None or len(text.split()) < 2 or text.replace(" ", "_") == name:
                problems.append(f"{here}: the text of {source} is {text!r}")
    return problems


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site without logging."""

    def log_message(self, *args):
        """Write nothing."""


def check_in_browser(root, executable, shots):
    """One sentence for every problem in Chromium; leaves screenshots in the folder ``shots``."""
    from playwright.sync_api import sync_playwright

    root = Path(root).resolve()
    shots.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=str(root))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    problems = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable)

        def open_page(size, scheme):
            width, height = size
            page = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            ).new_page()
            page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
            page.on(
                "console",
                lambda said: said.type == "error" and problems.append(f"{page.url}: {said.text}"),
            )
            page.on(
                "request",
                lambda asked: (
                    asked.url.startswith((home, "data:", "blob:"))
                    or problems.append(f"{page.url}: asks for {asked.url}")
                ),
            )
            return page

        phone = open_page(PHONE, "light")
        names = [str(path.relative_to(root)) for path in pages_of(root)]
        for name in names:
            phone.goto(home + name)
            width = phone.evaluate("document.documentElement.scrollWidth")
            if width > PHONE[0]:
                problems.append(f"{name}: {width} pixels wide on a screen of {PHONE[0]}")
            if broken := phone.evaluate(BROKEN):
                problems.append(f"{name}: on two lines or cut: {', '.join(broken[:5])}")
        desk = open_page(DESK, "light")
        desk.goto(home + CONTENTS)
        ends = desk.evaluate("document.querySelector('.bd-article').getBoundingClientRect().bottom")
        print(f"the contents of the guide end at {ends:.0f} of {DESK[1]} pixels")
        if ends > DESK[1]:
            problems.append(f"{CONTENTS} does not fit on one screen.")
        for kind, size in (("phone", PHONE), ("desk", DESK)):
            for scheme in ("light", "dark"):
                page = open_page(size, scheme)
                for name in filter(set(names).__contains__, SHOWN):
                    page.goto(home + name)
                    file = f"{name.removesuffix('.html').replace('/', '-')}-{kind}-{scheme}.png"
                    page.screenshot(path=shots / file, full_page=True)
        for words, expected in SEARCHES.items():
            phone.goto(home + f"search.html?q={words}")
            try:
                phone.wait_for_selector("#search-results li a", timeout=10_000)
                phone.wait_for_timeout(1_000)
            except Exception:  # the timeout error of the driver
                problems.append(f"The search finds nothing for {words!r}.")
                continue
            found = phone.eval_on_selector_all(
                "#search-results li a", "all => all.map(a => a.href)"
            )
            print(f"search for {words!r}: {len(found)} results")
            if not any(expected in link for link in found):
                problems.append(f"The search for {words!r} does not find {expected}.")
        browser.close()
    server.shutdown()
    print(f"{len(names)} pages opened at {PHONE[0]} pixels; screenshots in {shots}")
    return problems


def main(arguments=None):
    """Check, print every problem, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--browser", action="store_true", help="open every page in Chromium too")
    options = parser.parse_args(arguments)
    problems = check_pages(options.site)
    if options.browser:
        executable = next(filter(None, map(shutil.which, BROWSERS)), None)
        if executable is None:
            print(f"Chromium not found (tried {', '.join(BROWSERS)}): browser check skipped.")
        else:
            shots = options.site.resolve().parent / "site-check"
            problems += check_in_browser(options.site, executable, shots)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
