"""The documentation as a site, built as by ``make docs``: without a warning, without network, and with every link leading somewhere.

It is built once, by mkdocs in a process of its own that may not connect to anything; every test looks at what came of it,
one of them in a real browser. Some 9 s.
"""

import html
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import click
import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import expect

from tests.docs.test_snippets import ROOT
from tests.web.browser import browser

pytestmark = pytest.mark.slow
#: Runs mkdocs; whatever looks for another host ends the build with an error.
_WITHOUT_NETWORK = """
import runpy, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise OSError(f"The site is built without network, but {event} was called with {arguments[1:]}.")

sys.addaudithook(refuse)
runpy.run_module("mkdocs", run_name="__main__", alter_sys=True)
"""
#: Elements that a browser fetches by itself, and where they say from where.
_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
#: What a page has as often in the site as in the file that GitHub shows.
_ALIKE = ("h1", "h2", "h3", "li", "table", "tr", "td", "pre", "code", "strong", "img")


@dataclass
class Page(HTMLParser):
    """A page of the site: what is named in it, where it leads, what it has fetched, and how often its text has each element."""

    file: Path
    names: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    elements: dict[str, int] = field(default_factory=dict)
    in_text: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.file.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.names |= {name for name in (given.get("id"), given.get("name")) if name}
        self.in_text |= tag == "article"
        if self.in_text:
            self.elements[tag] = self.elements.get(tag, 0) + 1
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        if tag in _FETCHED and given.get(_FETCHED[tag]) and given.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(given[_FETCHED[tag]] or "")

    def handle_endtag(self, tag: str) -> None:
        self.in_text &= tag != "article"


@cache
def hooks() -> ModuleType:
    """What the site is made of besides `docs/`."""
    spec = spec_from_file_location("site_hooks", ROOT / "docs" / "site" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-c", _WITHOUT_NETWORK, "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert not re.search("WARNING|ERROR", done.stderr), done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page of the site."""
    return {file: Page(file) for file in sorted(site.rglob("*.html"))}


def test_every_link_and_every_anchor_of_the_site_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    missing, followed = [], 0
    for file, page in pages.items():
        if file.name == "404.html":  # its links begin at the root of whatever server shows it
            continue
        for link in page.links:
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (file.parent / unquote(path)).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            named = pages[target].names if target in pages else set()
            followed += 1
            if not target.is_file() or (anchor and unquote(anchor) not in named):
                missing.append(f"{file.relative_to(site)}: {link}")
    assert sorted(set(missing)) == []
    assert followed > 1000


def test_no_page_has_anything_fetched_from_another_host(site: Path, pages: dict[Path, Page]) -> None:
    foreign = {source for page in pages.values() for source in page.fetched if re.match(r"([a-z]+:)?//", source)}
    assert foreign == set()
    assert sum(len(page.fetched) for page in pages.values()) > len(pages), "or nothing was looked at"
    for file in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", file.read_text()), file.name
    # The theme's script fetches its drawing program from another host where a page has a drawing of this kind.
    assert [file.name for file in pages if 'class="mermaid"' in file.read_text()] == []


def test_a_page_of_the_site_has_the_headings_lists_tables_and_code_that_github_shows(
    site: Path, pages: dict[Path, Page], tmp_path: Path
) -> None:
    sources = {ROOT / name: place for name, place in hooks().PAGES.items()}
    sources |= {file: file.name for file in (ROOT / "docs").glob("*.md")}
    as_github = MarkdownIt("commonmark").enable("table")
    for source, place in sources.items():
        rendered = tmp_path / "rendered.html"
        rendered.write_text(f"<article>{as_github.render(source.read_text())}</article>")
        expected = Page(rendered).elements
        found = pages[site / re.sub(r"README\.md$", "index.html", place).replace(".md", ".html")].elements
        counted = {tag: (expected.get(tag, 0), found.get(tag, 0)) for tag in _ALIKE}
        assert {tag: both for tag, both in counted.items() if both[0] != both[1]} == {}, source.name


def test_every_public_name_has_its_entry_in_the_reference(site: Path, pages: dict[Path, Page]) -> None:
    import pylog_spark.client

    assert hooks().exported("pylog_spark.client") == tuple(pylog_spark.client.__all__)
    missing = []
    for module in hooks().REFERENCE:
        entries = pages[site / "reference" / f"{module}.html"].names
        missing += [f"{module}.{name}" for name in hooks().exported(module) if f"{module}.{name}" not in entries]
    assert missing == []


def test_every_module_that_says_what_is_public_is_in_the_reference() -> None:
    public = set()
    for file in (ROOT / "pylog_spark").rglob("*.py"):
        if re.search(r"^__all__ = ", file.read_text(), re.MULTILINE):
            public.add(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    # What the data source and a broker are made of.
    inside = {"pylog_spark.archive.tiered.beside", "pylog_spark.offsets", "pylog_spark.options"}
    assert public - inside - set(hooks().REFERENCE) == set()


def test_every_command_and_every_option_of_it_is_on_the_page_of_commands(site: Path, pages: dict[Path, Page]) -> None:
    place = (site / hooks().COMMANDS).with_suffix(".html")
    text = html.unescape(re.sub("<[^>]+>", "", place.read_text()))
    found = list(hooks().commands())
    assert {words for words, _, _ in found} >= {"pylog", "pylog broker", "pylog topic create"}
    for words, command, _ in found:
        assert words.replace(" ", "-") in pages[place].names
        options = [
            option.opts[0] for option in command.params if isinstance(option, click.Option) and not option.hidden
        ]
        assert [option for option in options if option not in text] == [], words


def test_an_example_of_a_docstring_is_shown_as_code(site: Path) -> None:
    for file in sorted((site / "reference").glob("*.html")):
        text = file.read_text()
        assert "doctest: +SKIP" not in text, file.name
        assert "<blockquote>" not in text, file.name


def test_llms_txt_has_every_page_of_the_navigation_with_its_first_sentence(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    assert text.startswith("# pylog\n\n> A durable, replayable log for PySpark")
    entries = re.findall(r"^- \[(.+?)\]\(([^)]+)\): (\S.*)$", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^- ", text, re.MULTILINE))
    assert [link for _, link, _ in entries if not (site / link).is_file()] == []
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    assert len(entries) == len(re.findall(r"\.md$", navigation, re.MULTILINE))
    assert [link for _, link, _ in entries[:2]] == ["index.html", "guarantees.html"]


def test_a_page_without_a_first_sentence_is_refused() -> None:
    with pytest.raises(ValueError, match=r"first sentence"):
        hooks().described("# A title\n\n- a list\n")
    assert hooks().described("# A title\n\nOne of [two](a.md). Two.\n") == ("A title", "One of two.")


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        """Requests are not printed."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL at which a folder is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long  # without a browser: above
def test_in_a_browser_a_search_leads_to_what_is_looked_for_and_nothing_comes_from_another_host(site: Path) -> None:
    asked: list[str] = []
    wrong: list[str] = []
    with served(site) as url, browser() as running:
        page = running.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{url}/benchmarks.html")
        page.get_by_placeholder("Search").fill("fence_producer")
        page.locator(".md-search-result__item a").first.click()
        expect(page).to_have_url(re.compile(r"/reference/pylog_spark\.client\.html"))
        expect(page.get_by_role("heading", name="fence_producer")).to_be_visible()
        page.close()
    assert [request for request in asked if not request.startswith((url, "blob:", "data:"))] == []
    assert any("search_index" in request for request in asked)
    assert wrong == []
