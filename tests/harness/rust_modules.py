"""Which file of a Rust crate uses which other one, read from its paths: `use` trees and paths inside the code.

A path is followed to the file that defines its item: through re-exports (`pub use`) and through names that a `use` brought in. A file that
only declares (`mod a;`) or re-exports another one does not use it. Not seen: methods, which need no path, and what macros write.
Works on code without comments, string contents and tests. No state; thread-safe.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

#: A module or an item, from the crate's root.
Module: TypeAlias = tuple[str, ...]
#: For each file the files that it uses, each with the names that it takes from it.
Arrows: TypeAlias = dict[Path, dict[Path, set[str]]]

_USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?[ \t]+)?use[ \t]+([^;]+);", re.MULTILINE)
_INLINE = re.compile(r"(?<![\w:.])([A-Za-z_]\w*(?:::[A-Za-z_]\w*)+)")
_WORD = re.compile(r"(?<![\w:.])([A-Za-z_]\w*)(?!\w)")
_ITEM = re.compile(
    r"^(?:pub(?:\([^)]*\))?[ \t]+)?(?:(?:async|unsafe|const|extern[ \t]+\"[^\"]*\")[ \t]+)*"
    r"(?:struct|enum|fn|trait|type|const|static|union|macro_rules!)[ \t]+(?:mut[ \t]+)?(\w+)",
    re.MULTILINE,
)


def module_of(src: Path, file: Path) -> Module:
    """The module whose code `file` holds: `a/mod.rs` and `a.rs` are both `a`, `lib.rs` is the root."""
    parts = file.relative_to(src).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def use_paths(tree: str) -> Iterator[tuple[Module, str]]:
    """(path, the name that it gets here) of each leaf of a `use` tree."""
    head, brace, rest = tree.strip().partition("{")
    before = tuple(part for part in head.strip().split("::") if part)
    if not brace:
        path, _, renamed = head.strip().partition(" as ")
        parts = tuple(part.strip() for part in path.split("::"))
        parts = parts[:-1] if parts[-1] == "self" and len(parts) > 1 else parts
        yield parts, renamed.strip() or parts[-1]
        return
    depth, start = 0, 0
    inside = rest[: rest.rindex("}")]
    for at, letter in enumerate(inside + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if branch := inside[start:at].strip():
                for path, name in use_paths(branch):
                    # `a::{self}` brings in `a`.
                    yield (before, before[-1]) if path == ("self",) else (before + path, name)
            start = at + 1


class Crate:
    """The modules of one crate; `codes` are its files with their code."""

    def __init__(self, src: Path, codes: Mapping[Path, str]) -> None:
        self.src = src
        self.codes = codes
        self.files: dict[Module, Path] = {module_of(src, file): file for file in codes}
        self.items = {module: set(_ITEM.findall(codes[file])) for module, file in self.files.items()}
        self.macros = {
            name: module
            for module, file in self.files.items()
            for name in re.findall(r"macro_rules![ \t]*(\w+)", codes[file])
        }
        self.names: dict[Module, dict[str, Module]] = {module: {} for module in self.files}
        self.globs: dict[Module, list[Module]] = {module: [] for module in self.files}
        for module, file in self.files.items():
            for _, tree in _USE.findall(codes[file]):
                for path, name in use_paths(tree):
                    absolute = self.absolute(module, path)
                    if absolute is not None and absolute[-1:] == ("*",):
                        self.globs[module].append(absolute[:-1])
                    elif absolute is not None:
                        self.names[module][name] = absolute

    def absolute(self, module: Module, path: Module) -> Module | None:
        """`path` as it is written in `module`, from the crate's root; `None`: it is not in this crate."""
        first, rest = path[0], path[1:]
        if first == "crate":
            return rest
        if first in ("self", "super"):
            here = module
            while path and path[0] in ("self", "super"):
                here = here[:-1] if path[0] == "super" else here
                path = path[1:]
            return here + path
        return module + path if (*module, first) in self.files else None

    def home(self, path: Module, seen: frozenset[Module] = frozenset()) -> tuple[Module, str]:
        """The module that defines what is at `path`, and the item's name in it; the empty name: the module itself is meant."""
        module: Module = ()
        for at, part in enumerate(path):
            if (*module, part) in self.files:
                module = (*module, part)
                continue
            if part in self.items[module] or path in seen:
                return module, part
            onward = [self.names[module][part]] if part in self.names[module] else []
            onward += [(*glob, part) for glob in self.globs[module] if part in self.items.get(glob, ())]
            for target in onward:
                return self.home(target + path[at + 1 :], seen | {path})
            if part in self.macros:
                return self.macros[part], part
            return module, part
        return module, ""

    def paths(self, module: Module) -> Iterator[Module]:
        """Every path of this crate that the module's code uses; a re-export is none."""
        code = self.codes[self.files[module]]
        for exported, tree in _USE.findall(code):
            for path, _ in use_paths(tree):
                absolute = self.absolute(module, path)
                if not exported and absolute is not None and absolute[-1:] != ("*",):
                    yield absolute
        rest = _USE.sub("", code)
        for written in _INLINE.findall(rest):
            path = tuple(written.split("::"))
            absolute = self.absolute(module, path)
            if absolute is None and path[0] in self.names[module]:
                absolute = self.names[module][path[0]] + path[1:]
            if absolute is not None:
                yield absolute
        words = set(_WORD.findall(rest))
        # What the module itself re-exports and uses needs no path, nor does what a glob brought in.
        for word in words & self.names[module].keys():
            yield self.names[module][word]
        for glob in self.globs[module]:
            if glob not in self.files:
                yield glob
            else:
                yield from ((*glob, word) for word in words & (self.items[glob] | self.names[glob].keys()))

    def arrows(self) -> Arrows:
        """Which file uses which."""
        found: Arrows = {file: {} for file in self.codes}
        for module, file in self.files.items():
            for path in self.paths(module):
                target, name = self.home(path)
                if target != module:
                    found[file].setdefault(self.files[target], set()).add(name or "::".join(("crate", *target)))
        return found


def circles(arrows: Mapping[Path, Mapping[Path, object]] | Mapping[str, Mapping[str, object]]) -> list[list[str]]:
    """Every largest group in which each one reaches all others (Tarjan's components with more than one), sorted."""
    graph = {str(one): [str(other) for other in others] for one, others in arrows.items()}
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        ahead = list(graph[start])
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                ahead += graph.get(node, [])
        reach[start] = seen
    together = {
        node: frozenset(o for o in reach[node] if node in reach.get(o, ())) for node in graph if node in reach[node]
    }
    return sorted(sorted(group) for group in set(together.values()) if len(group) > 1)
