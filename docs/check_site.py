"""Check the built documentation: ``python docs/check_site.py docs/_build/html [--browser]``.

Always: every link and every picture between the pages leads somewhere, anchors included, and every
picture has a text that says what it shows. With ``--browser`` headless Chromium opens every page of
the site on a phone's width: nothing may be wider than the screen, write an error to the console or
ask for anything from another server; the search must find; and pictures of some pages, light and
dark, are left beside the site for somebody to look at. Needs ``playwright`` and a Chromium that is
installed already; without one it says so and skips.
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

PHONE, DESK = (400, 800), (1280, 900)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Pages of which pictures are taken.
SHOWN = [
    "index.html",
    "start.html",
    "choose.html",
    "corrections.html",
    "results.html",
    "reproduction.html",
    "user_guide/pair_views.html",
    "user_guide/cubes.html",
    "user_guide/kmeans.html",
    "auto_examples/index.html",
    "auto_examples/quickstart.html",
    "api/index.html",
]


class Page(HTMLParser):
    """Links, anchors and pictures of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.pictures = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what the tag refers to and what it can be referred to by."""
        attrs = dict(attrs)
        self.anchors.update(attrs[key] for key in ("id", "name") if attrs.get(key))
        for key in ("href", "src"):
            if attrs.get(key):
                self.links.append(attrs[key])
        if tag == "img":
            self.pictures.append((attrs.get("src", ""), attrs.get("alt")))


def pages_of(root):
    """Paths of the pages; the theme keeps a template of its own among the static files."""
    return sorted(
        path for path in root.rglob("*.html") if path.relative_to(root).parts[0] != "_static"
    )


def check_pages(root):
    """Every broken link and every picture without a text, as sentences."""
    root = Path(root).resolve()
    pages = {path: Page(path) for path in pages_of(root)}
    if not pages:
        return [f"{root} holds no pages: build them first."]
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
                continue  # said to be decoration: the logo, thumbnails beside their titles
            # sphinx-gallery falls back to the name of the example.
            name = Path(source).stem.removeprefix("sphx_glr_").rsplit("_", 1)[0]
            if text is None or len(text.split()) < 2 or text.replace(" ", "_") == name:
                problems.append(f"{here}: the text of {source} is {text!r}")
    return problems


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site and tells nobody."""

    def log_message(self, *args):
        """Write nothing."""


def check_in_browser(root, executable, shots):
    """What goes wrong in Chromium, as sentences; leaves pictures in the folder ``shots``."""
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
        for kind, size in (("phone", PHONE), ("desk", DESK)):
            for scheme in ("light", "dark"):
                page = open_page(size, scheme)
                for name in filter(set(names).__contains__, SHOWN):
                    page.goto(home + name)
                    file = f"{name.removesuffix('.html').replace('/', '-')}-{kind}-{scheme}.png"
                    page.screenshot(path=shots / file, full_page=True)
        for words, expected in (("kd-tree", "dpcube"), ("noisy_max", "skdp.mechanisms")):
            phone.goto(home + f"search.html?q={words}")
            try:
                phone.wait_for_selector("#search-results li a", timeout=10_000)
                phone.wait_for_timeout(1_000)
            except Exception:  # the driver's own kind of timeout
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
    print(f"{len(names)} pages opened at {PHONE[0]} pixels; pictures in {shots}")
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
            print(f"No Chromium here (looked for {', '.join(BROWSERS)}): browser check skipped.")
        else:
            shots = options.site.resolve().parent / "site-check"
            problems += check_in_browser(options.site, executable, shots)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
