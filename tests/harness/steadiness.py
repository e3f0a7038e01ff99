"""What makes a test fail by chance, found in its source: deadlines that a busy machine does not keep, waits by hand, pipes that nobody reads,
lines of a log that are asked for before they are written, ports that somebody else may have, draws that no seed repeats, elapsed time.

Pure: a `Source` in, `Finding`s out. `tests/test_steady.py` looks at all of `tests` with it, and plants each of them. What is looked at is a
number only where it is written down, in the file or in another one of `tests` that it names; a deadline that a caller gives is looked at there.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

#: A deadline that is not kept means that something hangs, on a machine as busy as can be.
DEADLINE_MIN_S = 30.0
#: A question that is asked again and again may be as long as this.
STEP_MAX_S = 0.5
#: Numbers from here on are milliseconds, where clients differ in that.
_MILLISECONDS_FROM = 100

_CLOCKS = {"monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns"}
_KEYWORDS = {"timeout", "timeout_s", "deadline_s", "request_timeout", "ms"}
#: Calls whose time is what is tried: how long a reader follows without a record.
_TRIED = {"follow", "brief"}
#: Where a call has its deadline, when it is given by its place.
_PLACES = {
    "until": 2, "seconds_until": 2, "wait": 0, "join": 0, "result": 0, "exception": 0, "flush": 0, "settimeout": 0,
    "communicate": 1, "wait_for": 2, "wait_until": 2, "awaitTermination": 0, "poll": 0, "consume": 1,
}  # fmt: skip
_STEPS = {"poll", "consume", "list_topics"}
_OWN_ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):[1-9]\d*")
_OTHER_THREADS = {"Thread", "ThreadPoolExecutor", "start_broker", "open_broker"}
_REFUSALS = {"raises", "assert_refused"}
_DIALS = {"bind", "connect", "create_connection", "create_server"}
#: What a file must have to be worth a closer look.
_WAITS = re.compile(r"sleep|monotonic|perf_counter")
_ELAPSED = re.compile(r"monotonic|perf_counter|time\(\)|seconds_until")


Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Finding:
    """Something at a line that may fail by chance."""

    line: int
    says: str


class Source:
    """A file's source, with the numbers that stand in it.

    Parameters
    ----------
    text : str
        The source.
    root : Path, optional
        The folder of the project, for numbers that are imported from other files of it.
    """

    def __init__(self, text: str, root: Path | None = None) -> None:
        self.text = text
        self._root = root

    @cached_property
    def tree(self) -> ast.Module:
        """The whole file."""
        return ast.parse(self.text)

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """What each node stands in; the nodes in the order of `ast.walk`."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def nodes(self, *kinds: type[Node]) -> Iterator[Node]:
        """All nodes of some kinds."""
        return (node for node in self.parents if isinstance(node, kinds))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """All that a node stands in, from the inside out."""
        while (node := self.parents.get(node, self.tree)) is not self.tree:
            yield node

    def function(self, node: ast.AST) -> ast.AST:
        """The function that a node stands in, or the file."""
        functions = (each for each in self.around(node) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        return next(functions, self.tree)

    @cached_property
    def _numbers(self) -> dict[str, ast.expr]:
        found = {}
        for node in self.tree.body:
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            for target in targets:
                if isinstance(target, ast.Name) and (value := getattr(node, "value", None)) is not None:
                    found[target.id] = value
        return found

    @cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """Name -> the module that it comes from, and its name there."""
        return {
            each.asname or each.name: (node.module or "", each.name)
            for node in self.nodes(ast.ImportFrom)
            for each in node.names
        }

    def number(self, node: ast.expr | None) -> float | None:
        """What an expression is when it is a number that is written down; else None."""
        match node:
            case ast.Constant(value=bool()):
                return None
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.Name(id=name) if name in self._numbers:
                return self.number(self._numbers[name])
            case ast.Name(id=name) if name in self.imported:
                module, name = self.imported[name]
                there = self._other(module)
                return there.number(ast.Name(name)) if there else None
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self.imported:
                there = self._other(".".join(self.imported[module]))
                return there.number(ast.Name(name)) if there else None
            case ast.IfExp(body=body, orelse=orelse):
                both = [each for each in (self.number(body), self.number(orelse)) if each is not None]
                return min(both, default=None)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=right):
                one, other = self.number(left), self.number(right)
                return None if one is None or other is None else _computed(op, one, other)
        return None

    def _other(self, module: str) -> "Source | None":
        file = None if self._root is None else self._root / f"{module.replace('.', '/')}.py"
        return _read(file, self._root) if file is not None and file.exists() else None


@cache
def _read(file: Path, root: Path | None) -> Source:
    return Source(file.read_text(), root)


def _computed(op: ast.operator, one: float, other: float) -> float | None:
    match op:
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Mult():
            return one * other
    return one / other if other else None


def _name(node: ast.AST) -> str:
    """The last word of what is called or named."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _holds(node: ast.AST, wanted: Callable[[ast.AST], bool]) -> bool:
    return any(wanted(each) for each in ast.walk(node))


def _is_of(call: ast.Call, module: str) -> bool:
    return isinstance(call.func, ast.Attribute) and _name(call.func.value) == module


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node) in _CLOCKS and not node.args


# The rules


def short_deadlines(source: Source) -> Iterator[Finding]:
    """Deadlines of less than `DEADLINE_MIN_S`; not those whose passing is what the test expects, inside ``pytest.raises``."""
    for call in source.nodes(ast.Call):
        given = _deadline(source, call)
        if given is not None and not _is_expected_to_fail(source, call):
            yield Finding(call.lineno, f"{_name(call)} has {given:g} s: a deadline is {DEADLINE_MIN_S:g} s or more")
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = [*source.nodes(ast.FunctionDef)]
    functions += source.nodes(ast.AsyncFunctionDef)
    for function in functions:
        its = function.args
        named, defaults = [*its.posonlyargs, *its.args], [*its.defaults]
        pairs = [*zip(named[len(named) - len(defaults) :], defaults, strict=True)]
        pairs += [(each, value) for each, value in zip(its.kwonlyargs, its.kw_defaults, strict=True) if value]
        for parameter, default in pairs:
            seconds = source.number(default) if parameter.arg in _KEYWORDS else None
            if seconds is not None and seconds < DEADLINE_MIN_S:
                yield Finding(function.lineno, f"{function.name} has {seconds:g} s when its caller gives none")


def _deadline(source: Source, call: ast.Call) -> float | None:
    """A call's deadline in seconds when it is too short."""
    name = _name(call)
    if name in _TRIED:
        return None
    given: list[ast.expr] = [each.value for each in call.keywords if each.arg in _KEYWORDS]
    is_in_ms = any(each.arg == "ms" for each in call.keywords)
    place = 1 if name == "wait_for" and _is_of(call, "asyncio") else _PLACES.get(name, len(call.args))
    # Scripts of requests have an `until` of their own, whose third is a version.
    if place < len(call.args) and (name != "until" or isinstance(call.func, ast.Name) or _is_of(call, "waiting")):
        given.append(call.args[place])
    for each in given:
        seconds = source.number(each)
        if seconds is None:
            continue
        if name in _STEPS:
            seconds = seconds / 1000 if is_in_ms or seconds >= _MILLISECONDS_FROM else seconds
            if seconds <= STEP_MAX_S:
                continue
        if seconds < DEADLINE_MIN_S:
            return seconds
    return None


def _is_expected_to_fail(source: Source, node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.With) and any(_name(item.context_expr) in _REFUSALS for item in each.items)
        for each in source.around(node)
    )


def waits_by_hand(source: Source) -> Iterator[Finding]:
    """Sleeps, and loops that look at a clock."""
    if not _WAITS.search(source.text):
        return
    for call in source.nodes(ast.Call):
        is_own = isinstance(call.func, ast.Name) and "sleep" in source.imported
        if _name(call) == "sleep" and (is_own or _is_of(call, "time")):
            yield Finding(call.lineno, "a sleep: `waiting` has a helper for each kind of wait")
    for compared in source.nodes(ast.Compare):
        if _holds(compared, _is_clock) and any(isinstance(each, ast.While) for each in source.around(compared)):
            yield Finding(compared.lineno, "a loop that looks at a clock: `waiting` has a helper for each kind of wait")


def unread_pipes(source: Source) -> Iterator[Finding]:
    """Pipes of a child's output that nothing reads while it writes."""
    if "PIPE" not in source.text:
        return
    for node in source.nodes(ast.Attribute, ast.Name):
        if _name(node) == "PIPE":
            held = source.parents[node]
            call = next((each for each in source.around(node) if isinstance(each, ast.Call)), None)
            is_run = call is not None and _name(call) == "run"
            if not is_run and not (isinstance(held, ast.keyword) and held.arg == "stdin"):
                yield Finding(
                    node.lineno, "a pipe that nothing reads while the child writes: `children.PipedChild` does"
                )


def hurried_lines(source: Source) -> Iterator[Finding]:
    """Assertions that a log has a line, when it may not yet be written."""
    if ".logs()" not in source.text and "caplog" not in source.text:
        return
    # What this thread logs is there at once.
    others = any(_name(call) in _OTHER_THREADS for call in source.nodes(ast.Call))
    for asserted in source.nodes(ast.Assert):
        names = _names_of_logs(source.function(asserted))
        for node in ast.walk(asserted.test):
            is_log = (isinstance(node, ast.Call) and _name(node) == "logs") or (
                isinstance(node, ast.Name) and node.id in names
            )
            is_log |= (
                others and isinstance(node, ast.Attribute) and node.attr == "text" and _name(node.value) == "caplog"
            )
            if is_log and _asks_for_more(source, node, asserted):
                yield Finding(
                    asserted.lineno, "asks for a line that may not yet be written: `waiting.said` waits for it"
                )
                break


def _names_of_logs(function: ast.AST) -> set[str]:
    """Names that a function gives to what it read from a log."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_log(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_log(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_log(node.value)
    if not isinstance(node, ast.Call):
        return False
    return _name(node) == "logs" or (isinstance(node.func, ast.Attribute) and _is_log(node.func.value))


def _asks_for_more(source: Source, log: ast.AST, asserted: ast.Assert) -> bool:
    """Whether an assertion fails because of what a log does not have yet."""
    asks = True
    for each in source.around(log):
        if each is asserted:
            break
        if isinstance(each, ast.Compare):
            # What is not there; what a comprehension does not leave.
            is_nothing = isinstance(each.comparators[0], ast.List) and not each.comparators[0].elts
            asks &= not (isinstance(each.ops[0], ast.NotIn) or (isinstance(each.ops[0], ast.Eq) and is_nothing))
        elif isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not):
            asks = False
    return asks


def bare_ports(source: Source) -> Iterator[Finding]:
    """Ports of this machine that somebody else may have."""
    for node in source.nodes(ast.Constant) if _OWN_ADDRESS.search(source.text) else ():
        found = _OWN_ADDRESS.search(node.value) if isinstance(node.value, str) else None
        if found and not isinstance(source.parents[node], ast.Expr):
            yield Finding(node.lineno, f"{found.group()} may be somebody else's: at `ports.nowhere` nothing listens")
    for call in source.nodes(ast.Call):
        if _name(call) in _DIALS and call.args and isinstance(call.args[0], ast.Tuple) and len(call.args[0].elts) == 2:
            port = source.number(call.args[0].elts[1])
            if port:
                yield Finding(call.lineno, f"port {port:g} may be somebody else's: 0 is given a free one")


def lucky_draws(source: Source) -> Iterator[Finding]:
    """What is drawn without a seed that a failure can name."""
    if "import random" not in source.text:
        return
    for call in source.nodes(ast.Call):
        is_modules = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "random"
        is_seeded = _name(call) == "Random" and bool(call.args)
        if is_modules and not is_seeded and not _is_given(source, call):
            yield Finding(call.lineno, "drawn without a seed: `runs.seed` has one that is repeated")


def _is_given(source: Source, call: ast.Call) -> bool:
    """Whether `random` is not the module where it is called, but a name of the function's own."""
    functions = (
        each for each in source.around(call) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    )
    return any(
        (isinstance(each, ast.arg) and each.arg == "random")
        or (isinstance(each, ast.Name) and each.id == "random" and isinstance(each.ctx, ast.Store))
        for function in functions
        for each in ast.walk(function)
    )


def hypothesis_deadlines(source: Source) -> Iterator[Finding]:
    """Deadlines of a drawn case."""
    for call in source.nodes(ast.Call) if "deadline" in source.text else ():
        if _name(call) in ("settings", "register_profile"):
            for each in call.keywords:
                if each.arg == "deadline" and not (isinstance(each.value, ast.Constant) and each.value.value is None):
                    yield Finding(call.lineno, "a drawn case has a deadline on the clock")


def elapsed_times(source: Source) -> Iterator[Finding]:
    """Bounds of elapsed time below a deadline's least, in tests that others run beside."""
    if not _ELAPSED.search(source.text) or any(
        "mark.alone" in ast.unparse(node) for node in source.tree.body if isinstance(node, ast.Assign)
    ):
        return
    for asserted in source.nodes(ast.Assert):
        if not _is_alone(source, asserted):
            for compared in ast.walk(asserted.test):
                if isinstance(compared, ast.Compare) and _is_bounded(source, compared, source.function(asserted)):
                    yield Finding(asserted.lineno, "a bound of elapsed time, in a test that is not marked `alone`")


def _is_alone(source: Source, node: ast.AST) -> bool:
    return any(
        "mark.alone" in ast.unparse(decorator)
        for each in source.around(node)
        if isinstance(each, ast.FunctionDef | ast.ClassDef)
        for decorator in each.decorator_list
    )


def _is_bounded(source: Source, compared: ast.Compare, function: ast.AST) -> bool:
    values = [compared.left, *compared.comparators]
    for one, op, other in zip(values, compared.ops, values[1:], strict=False):
        if isinstance(op, ast.Lt | ast.LtE):
            elapsed, bound = one, source.number(other)
        elif isinstance(op, ast.Gt | ast.GtE):
            elapsed, bound = other, source.number(one)
        else:
            continue
        if _is_elapsed(elapsed, function) and (bound is None or bound < DEADLINE_MIN_S):
            return True
    return False


def _is_elapsed(node: ast.expr, function: ast.AST) -> bool:
    """Whether it is the time that something took."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _holds(node, _is_clock)
    if isinstance(node, ast.Call):
        return _name(node) == "seconds_until"
    return isinstance(node, ast.Name) and any(
        isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
        and not isinstance(each.value, ast.Name)
        and _is_elapsed(each.value, function)
        for each in ast.walk(function)
    )


#: Every rule, by its name.
RULES: Mapping[str, Callable[[Source], Iterator[Finding]]] = {
    rule.__name__: rule
    for rule in (
        short_deadlines, waits_by_hand, unread_pipes, hurried_lines, bare_ports, lucky_draws, hypothesis_deadlines,
        elapsed_times,
    )
}  # fmt: skip
