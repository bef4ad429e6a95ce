"""Look at each page of the built site in Chromium, at three widths, light and dark.

`make site-pictures` fails, naming page and width, if a page is wider than the screen, logs an error,
shows a picture that does not load, or asks another host for anything. It leaves a picture of each page.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from manual.site.pages import BUILT, ROOT

PICTURES = ROOT / "build" / "site" / "pictures"
WIDTHS = (390, 768, 1280)
SCHEMES = {"light": "default", "dark": "slate"}
_HEIGHT = 900
# What sticks out is named, so that nobody has to search for it.
_MEASURE = """() => {
    const root = document.scrollingElement;
    const scrolls = (e) => !e.matches("body, html")
        && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
    const wide = [...document.querySelectorAll("main *")].filter(
        (e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !scrolls(e.parentElement));
    return {
        over: root.scrollWidth - root.clientWidth,
        wide: wide.slice(0, 3).map((e) => e.tagName + " " + e.textContent.trim().slice(0, 40)),
        scheme: document.body.dataset.mdColorScheme,
        broken: [...document.images].filter((e) => !e.naturalWidth).map((e) => e.src),
    };
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this host, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def problems(page: Page, address: str, name: str, scheme: str, picture: Path) -> Iterator[str]:
    """Open a page, take its picture, and yield what is wrong with it."""
    reported: list[str] = []
    page.on("console", lambda each: reported.append(each.text) if each.type == "error" else None)
    page.on("pageerror", lambda error: reported.append(str(error)))
    page.on("request", lambda each: reported.append(f"asks {each.url}") if _is_far(each.url) else None)
    page.goto(f"{address}/{name}", wait_until="load")
    measured: dict[str, Any] = page.evaluate(_MEASURE)
    picture.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=picture, full_page="--whole" in sys.argv)
    yield from reported
    yield from (f"{source} does not load" for source in measured["broken"])
    if measured["over"] > 0:
        yield f"{measured['over']} px wider than the screen: {measured['wide']}"
    if measured["scheme"] != SCHEMES[scheme]:
        yield f"is shown in the palette {measured['scheme']}"


def _is_far(address: str) -> bool:
    return not address.startswith(("http://127.0.0.1:", "data:", "blob:"))


def look(names: list[str]) -> Iterator[str]:
    """Yield what is wrong with pages of the built site, at each width and in each palette."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        raise SystemExit("Chromium is missing: apt-get install chromium, or name it in CHROMIUM.")
    shutil.rmtree(PICTURES, ignore_errors=True)
    with served(BUILT) as address, sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for width in WIDTHS:
            for scheme in SCHEMES:
                size = {"width": width, "height": _HEIGHT}
                context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
                for name in names:
                    page = context.new_page()  # so that events are of this page
                    picture = PICTURES / f"{width}-{scheme}" / f"{name.replace('/', '-')}.png"
                    for problem in problems(page, address, name, scheme, picture):
                        yield f"{name} at {width} px, {scheme}: {problem}"
                    page.close()
                context.close()
        browser.close()


def main() -> None:
    """Print what is wrong, and end with 1 if anything is."""
    asked = [each for each in sys.argv[1:] if not each.startswith("--")]
    names = asked or sorted(path.relative_to(BUILT).as_posix() for path in BUILT.rglob("*.html"))
    if not names:
        raise SystemExit(f"There are no pages in {BUILT}: run `make site` first.")
    found = list(look(names))
    sys.stdout.write("\n".join([*found, f"{len(names)} pages, {len(found)} problems; {PICTURES}\n"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
