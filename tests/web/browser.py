"""A real browser without a screen, driven by Playwright, in which tests use the console as people do.

Whatever a page logs as an error, throws or asks in a dialog of the browser fails the test, and so does what the content security policy
forbids. ``PYLOG_SCREENSHOTS`` names a folder for pictures of the journeys.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, Locator, Page, expect, sync_playwright

from tests.peers.chromium import chromium

#: What the pages are given to show what the tests wait for.
DEADLINE_MS = 30_000
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser, for the tests of a file. Fails when none can be had."""
    found = chromium()
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=found.program,
            env=dict(found.environment),
            args=["--font-render-hinting=none", "--disable-gpu"],
        )
        yield running
        running.close()


class Console:
    """The console in a tab of its own.

    Parameters
    ----------
    browser : Browser
        The browser.
    url : str
        Where the broker's HTTP server is.
    pictures : Path
        Folder for pictures, when ``PYLOG_SCREENSHOTS`` names none.
    viewport : dict
        Width and height in pixels.
    **context
        Further options of Playwright's ``new_context``, such as ``color_scheme``.

    Attributes
    ----------
    page : Page
        The tab.
    wrong : list of str
        What went wrong in the page so far. A test that expects a refusal clears it.
    """

    def __init__(
        self, browser: Browser, url: str, pictures: Path, viewport: dict[str, int] = DESKTOP, **context: Any
    ) -> None:
        self._url, self._pictures = url, Path(os.environ.get("PYLOG_SCREENSHOTS") or pictures)
        options: dict[str, Any] = {"viewport": viewport, "color_scheme": "light", **context}
        self._context = browser.new_context(**options)
        self._context.set_default_timeout(DEADLINE_MS)
        self.page: Page = self._context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self._unexpected)

    def _unexpected(self, dialog: Dialog) -> None:
        self.wrong.append(f"a dialog of the browser: {dialog.message}")
        dialog.dismiss()

    def open(self, place: str = "") -> Page:
        """The view at this place, such as ``topics/orders``, loaded anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self._url}/#/{place}")
        return self.page

    def picture(self, name: str) -> Path:
        """Take a picture of what is seen."""
        self._pictures.mkdir(parents=True, exist_ok=True)
        path = self._pictures / f"{name}.png"
        self.page.screenshot(path=path, animations="disabled")
        return path

    def column(self, table: str, name: str) -> list[str]:
        """The texts of a column of a table, from the top."""
        found = self.table(table)
        heads = [re.sub(r" [↑↓]$", "", text) for text in found.locator("thead th").all_inner_texts()]
        return [
            text.strip()
            for text in found.locator(f"tbody tr > :nth-child({heads.index(name) + 1})").all_text_contents()
        ]

    def table(self, name: str) -> Locator:
        """The table with this name."""
        return self.page.get_by_role("table", name=name, exact=True)

    def is_wider_than_the_screen(self) -> bool:
        """Whether the page can be scrolled sideways."""
        wider: bool = self.page.evaluate(
            "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"
        )
        return wider

    def faults(self, axe: str, *rules: str) -> list[str]:
        """What axe-core, given as its script, finds wrong in the page as it is now, by these rules or all: the rule, and the first element
        that breaks it."""
        self.page.evaluate(axe)
        found: list[str] = self.page.evaluate(
            "(rules) => axe.run(rules.length ? {runOnly: rules} : {})"
            ".then((all) => all.violations.map((each) => `${each.id}: ${each.help}: ${each.nodes[0].html}`))",
            list(rules),
        )
        return found

    def close(self) -> None:
        """Close the tab, and say what went wrong in it."""
        self._context.close()
        assert self.wrong == []
