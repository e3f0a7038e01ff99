"""The docstrings of which the Python reference is made: each public name has one, and it names every parameter.

They are read from the files, as the reference does; nothing is imported.
"""

import logging
import re
from collections.abc import Iterator

import griffe
import pytest

from tests.docs.test_site import ROOT, hooks

pytestmark = pytest.mark.check

#: Of pytest's plugin the parameters are other fixtures.
MODULES = sorted(set(hooks().REFERENCE) - {"pylog_spark.testing.plugin"})
#: A docstring that sends its reader to another one.
_ELSEWHERE = re.compile(
    r"\b([Aa]s of|[Ss]ee|[Aa]s|what) `(pylog_spark|confluent_kafka)\.|[Pp]arameters [^.]*(as in|are those of) `"
)


@pytest.fixture(scope="module")
def package() -> griffe.Module:
    """The package as griffe reads it."""
    loader = griffe.GriffeLoader(search_paths=[ROOT], docstring_parser="numpy")
    module = loader.load("pylog_spark")
    loader.resolve_aliases(implicit=True, external=False)
    assert isinstance(module, griffe.Module)
    return module


def found(package: griffe.Module, module: str, name: str) -> griffe.Object:
    """The class or function that a public name means."""
    thing = package[f"{module}.{name}".removeprefix("pylog_spark.")]
    return thing.final_target if isinstance(thing, griffe.Alias) else thing


def public_parts(thing: griffe.Object) -> Iterator[griffe.Object]:
    """A function, or a class and its methods and properties, its own and those of the classes of this package that it is built on."""
    yield thing
    if isinstance(thing, griffe.Class):
        for name, member in thing.all_members.items():
            part = member.final_target if isinstance(member, griffe.Alias) else member
            if not name.startswith("_") and (part.is_function or "property" in part.labels):
                yield part


def text_of(thing: griffe.Object) -> str:
    """Its docstring."""
    return thing.docstring.value if thing.docstring else ""


def parameters(thing: griffe.Object) -> list[str]:
    """The parameters of a function, or of a class's own constructor; of what Spark calls with an event none need be said."""
    if thing.name.startswith("onQuery"):
        return []
    maker = thing.members.get("__init__") if isinstance(thing, griffe.Class) else thing
    if not isinstance(maker, griffe.Function):
        return []
    return [parameter.name for parameter in maker.parameters if parameter.name not in ("self", "cls")]


def is_named(parameter: str, text: str) -> bool:
    """Whether a docstring says what a parameter is: in its section, or in a sentence in backticks."""
    in_section = rf"^(\*?\*?\w+, )*\*?\*?{parameter}(, \*?\*?\w+)*( :.*)?$"
    return f"`{parameter}`" in text or re.search(in_section, text, re.MULTILINE) is not None


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_says_what_it_is_and_what_its_parameters_are(module: str, package: griffe.Module) -> None:
    lacking = []
    for name in hooks().exported(module):
        for part in public_parts(found(package, module, name)):
            text = text_of(part)
            if not text:
                lacking.append(f"{part.path} has no docstring")
            elif not _ELSEWHERE.search(text) and "Made by `" not in text:
                unnamed = [each for each in parameters(part) if not is_named(each, text)]
                lacking += [f"{part.path} does not say what {each} is" for each in unnamed]
    assert sorted(set(lacking)) == []


@pytest.mark.parametrize("module", MODULES)
def test_the_sections_of_a_docstring_are_of_what_is_there(
    module: str, package: griffe.Module, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    sections = 0
    for name in hooks().exported(module):
        for part in public_parts(found(package, module, name)):
            if part.docstring:
                sections += len(part.docstring.parsed)
    assert sections > 0
    assert [record.getMessage() for record in caplog.records] == []
