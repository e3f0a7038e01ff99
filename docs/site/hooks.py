"""What mkdocs does not do by itself (`mkdocs.yml` names this file): pages from files outside of `docs/`, and links to them.

    README.md and other pages of the repository -> a page each (`PAGES`)
    what every command says at ``--help`` -> one page (`COMMANDS`)
    what the public modules export (`REFERENCE`) -> a page for each module, filled from the docstrings by mkdocstrings
    any other file that a page links to -> a page that shows it; a link to a folder that has no page becomes its text
    the navigation and each page's first sentence -> `llms.txt`, a list of the pages for programs that read the site (llmstxt.org)

Nothing is fetched and nothing is written outside of the site's folder. Not thread-safe; mkdocs calls it from one thread.
"""

import ast
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
#: Pages outside of `docs/`, and where they are in the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/CHANGELOG.md",
    "SECURITY.md": "project/SECURITY.md",
    "ARCHITECTURE.md": "project/ARCHITECTURE.md",
    "CONTRIBUTING.md": "project/CONTRIBUTING.md",
    "examples/README.md": "examples/README.md",
    "examples/flights/README.md": "examples/flights/README.md",
}
#: The public modules, and their public names where they have no ``__all__``.
REFERENCE: dict[str, tuple[str, ...]] = {
    "pylog_spark": (),
    "pylog_spark.audit": (),
    "pylog_spark.client": (),
    "pylog_spark.client.aio": (),
    "pylog_spark.consumer_group": (),
    "pylog_spark.datasource": ("PylogDataSource",),
    "pylog_spark.errors": ("PylogError",),
    "pylog_spark.lakehouse": (),
    "pylog_spark.listener": (),
    "pylog_spark.registry.client": ("RegistryClient", "RegistryError"),
    "pylog_spark.testing": (),
    "pylog_spark.testing.plugin": ("pylog_broker", "pylog_topic", "pylog_cluster", "pylog_spark_session"),
}
#: The page of commands, as wide as their help is in it.
COMMANDS = "reference/commands.md"
_WIDTH = 90
#: A larger file that a page links to is offered as it is, not shown.
SHOWN_BYTES_MAX = 100_000
_SHOWN = {".conf": "ini", ".example": "ini", ".java": "java", ".py": "python", ".xml": "xml", ".yml": "yaml"}
_LINK = re.compile(r"(?<!\\)(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
#: The first paragraph of a page that is text: no heading, list, table, quotation, comment or picture.
_PARAGRAPH = re.compile(r"(?:\A|\n\n)(?![#|<>!:\s]|[-*] )(.+?)(?=\n\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|\Z)|:\Z)")
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[`~]*\s*?$", re.MULTILINE | re.DOTALL)


def exported(module: str) -> tuple[str, ...]:
    """Give the public names of `module`, without importing it."""
    if REFERENCE[module]:
        return REFERENCE[module]
    for statement in ast.parse(source_of(module).read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return tuple(name for name in ast.literal_eval(statement.value) if not name.startswith("_"))
    raise ValueError(f"{module} has no __all__: name what is public in docs/site/hooks.py.")


def source_of(module: str) -> Path:
    """Give the file of a module."""
    place = ROOT.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs/`."""
    for name, place in PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text()))
    for module in REFERENCE:
        files.append(File.generated(config, f"reference/{module}.md", content=reference(module)))
    files.append(File.generated(config, COMMANDS, content=commands_page()))
    sources = {name: place for place, name in PAGES.items()}
    for page in list(files.documentation_pages()):
        origin = sources.get(page.src_uri, f"docs/{page.src_uri}")
        for target in outside(origin, page.content_string):
            if files.get_file_from_path(shown_at(target)) is None:
                files.append(shown(target, config))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Keep the text of `llms.txt` until the site's folder is there."""
    config.extra["llms.txt"] = llms(nav, config)
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write `llms.txt`."""
    Path(config.site_dir, "llms.txt").write_text(config.extra["llms.txt"])


def llms(nav: Navigation, config: MkDocsConfig) -> str:
    """Give the pages by the sections of the navigation, each with its first sentence; links begin at the folder of the file."""
    parts = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## First", ""]
    for item in nav.items:
        if isinstance(item, Section):
            parts += ["", f"## {item.title}", ""]
        for page in item.children or [] if isinstance(item, Section) else [item]:
            if isinstance(page, Page):
                title, sentence = described(page.file.content_string)
                parts.append(f"- [{title}]({page.url}): {sentence}")
    return "\n".join(parts) + "\n"


def described(markdown: str) -> tuple[str, str]:
    """Give the title of a page and its first sentence, without links; of a page of the reference, its module's.

    Raises
    ------
    ValueError
        When a page has none: a reader of the list would not know what it is about.
    """
    if module := re.search(r"^::: (\S+)$", markdown, re.MULTILINE):
        title, text = module[1], docstring(module[1])
    else:
        text = _FENCE.sub("", _FRONT_MATTER.sub("", markdown))
        heading = re.search(r"^# (.+)$", text, re.MULTILINE)
        title = heading[1] if heading else ""
    paragraph = _PARAGRAPH.search(text)
    sentence = _SENTENCE.search(" ".join(_LINK.sub(r"\2", paragraph[1]).split())) if paragraph else None
    if not title or sentence is None:
        raise ValueError(f"A page needs a title and a first sentence for llms.txt: {markdown[:80]!r}.")
    return title, sentence[0].rstrip(":")


def docstring(module: str) -> str:
    """Give what a module says of itself, without importing it."""
    return ast.get_docstring(ast.parse(source_of(module).read_text())) or ""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of a page to where their targets are in the site."""
    origins = {place: name for name, place in PAGES.items()}
    place = page.file.src_uri
    if place.startswith(("reference/", "source/")):
        return markdown
    origin = origins.get(place, f"docs/{place}")

    def rewritten(link: re.Match[str]) -> str:
        bang, text, target = link.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return link[0]
        name = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        file = ROOT / name
        if file.is_dir():
            if f"{name}/README.md" not in PAGES:
                return text
            name = f"{name}/README.md"
        there = name.removeprefix("docs/") if name.startswith("docs/") else PAGES.get(name, shown_at(name))
        return f"{bang}[{text}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{hash_}{anchor})"

    return outside_of_fences(markdown, lambda text: _LINK.sub(rewritten, text))


def outside_of_fences(markdown: str, change: Callable[[str], str]) -> str:
    """Apply `change` to what is not code of its own lines."""
    done, parts = 0, []
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[done : fence.start()]), fence[0]]
        done = fence.end()
    return "".join([*parts, change(markdown[done:])])


def outside(origin: str, markdown: str) -> Iterator[str]:
    """Give the files of the repository, without pages and what is in `docs/`, to which the page `origin` links."""
    for _, _, target in _LINK.findall(_FENCE.sub("", markdown)):
        path = target.partition("#")[0]
        if path and "://" not in target:
            name = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
            if not name.startswith("docs/") and name not in PAGES and (ROOT / name).is_file():
                yield name


def shown_at(name: str) -> str:
    """Give the place in the site of a file of the repository that is no page."""
    file = ROOT / name
    is_shown = file.suffix in _SHOWN and file.stat().st_size <= SHOWN_BYTES_MAX
    return f"source/{name}.md" if is_shown else f"source/{name}"


def shown(name: str, config: MkDocsConfig) -> File:
    """Give the page that shows a file, or the file itself."""
    place, file = shown_at(name), ROOT / name
    if not place.endswith(".md"):
        return File.generated(config, place, abs_src_path=str(file))
    fence = "`" * 8
    code = f"---\ntitle: {name}\n---\n\n# {name}\n\n{fence}{_SHOWN[file.suffix]}\n{file.read_text()}{fence}\n"
    return File.generated(config, place, content=code)


def reference(module: str) -> str:
    """Give the page of a public module: its own text, then each name that it exports."""
    names = exported(module)
    options = ["    options:", "      heading_level: 1", "      show_root_full_path: true", "      members: false"]
    parts = ["---", f"title: {module}", "---", "", f"::: {module}", *options]
    for name in names:
        parts += ["", f"::: {module}.{name}"]
    return "\n".join(parts) + "\n"


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Give every command with the words by which it is called, those of a group behind it."""
    from pylog_spark.cli.main import pylog

    def below(
        words: str, command: click.Command, parent: click.Context | None
    ) -> Iterator[tuple[str, click.Command, click.Context]]:
        settings = {**command.context_settings, "terminal_width": _WIDTH}
        context = command.context_class(command, info_name=words.rpartition(" ")[2], parent=parent, **settings)
        yield words, command, context
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                if found is not None and not found.hidden:
                    yield from below(f"{words} {name}", found, context)

    return below("pylog", pylog, None)


def commands_page() -> str:
    """Give the page of commands: what each says at ``--help``."""
    parts = ["# Commands", "", "What `pylog` and each of its commands say at `--help`."]
    for words, command, context in commands():
        level = "#" * min(1 + len(words.split()), 3)
        parts += ["", f"{level} `{words}`", "", "```text", command.get_help(context), "```"]
    return "\n".join(parts) + "\n"
