"""On a bare Debian, with nothing but git, make and Rust, `make demo` and `make test` do all of the set-up. Long: ten minutes for each release.

On Debian 12 they run as root, on Debian 13 as a user: the first with a sudo that asks nothing, the second after the line that it prints
for those who may install nothing was pasted. Everything is compiled and brought anew. The tests of a release follow each other in one system.
"""

import re
from collections.abc import Iterator

import pytest

from tests.packaging.bare import PROJECT, Bare

pytestmark = [pytest.mark.long, pytest.mark.root, pytest.mark.timeout(3600)]
#: Who builds, by release.
_OWNER = {"bookworm": "root", "trixie": "somebody"}
_BUILD = {"python3", "python3-venv", "default-jre-headless", "gcc", "libc6-dev"}
#: openssl is there with the certificates, without which git reaches nothing.
_TEST = {"kcat", "npm", "maven"}
#: Of Python's tests some that use each of the packages; of Rust's one crate's: a compiler that has built the native half lacks nothing.
_SOME = {
    "PYTEST_ARGS": "tests/unit/test_preflight.py tests/broker/test_life.py tests/interop/test_matrix.py tests/web/test_journeys.py",
    "MANIFEST": "--manifest-path broker_native/Cargo.toml --locked -p pylog-record",
}


@pytest.fixture(scope="module", params=list(_OWNER))
def release(request: pytest.FixtureRequest) -> str:
    """The name of a release of Debian: 12, and 13, the newest that is stable."""
    return str(request.param)


@pytest.fixture(scope="module")
def bare(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """A system of it. It takes more of the disk than all other tests, so it goes at once."""
    system = Bare.make(release, tmp_path_factory.mktemp(release) / "system", _OWNER[release])
    yield system
    system.remove()


def the_line(printed: str) -> tuple[str, set[str]]:
    """The one line to paste of what make printed, and the packages that it names."""
    (line,) = re.findall(r"^.*apt-get install.*$", printed, re.MULTILINE)
    return line, set(re.findall(r"(?<= )[a-z][\w.-]+", line.partition("--no-install-recommends")[2]))


def test_a_user_who_may_install_nothing_is_given_one_line_and_nothing_is_built(bare: Bare) -> None:
    for goal, packages in (("demo", _BUILD), ("test", _BUILD | _TEST)):
        done = bare.run("make", goal, user="somebody")
        assert done.returncode != 0
        line, named = the_line(done.stdout)
        assert line.startswith("su - -c 'apt-get update && apt-get install ")
        assert named == packages, done.stdout
        assert len(done.stdout.splitlines()) == 3, done.stdout
    assert sorted(each.name for each in bare.inside(PROJECT).iterdir() if each.name in (".venv", "target")) == []


def test_make_demo_sets_up_a_bare_system_and_comes_to_its_end(release: str, bare: Bare) -> None:
    if _OWNER[release] != "root":
        bare.let_use_sudo(without_password=True)
    done = bare.run("make", "demo", user=_OWNER[release])
    assert done.returncode == 0, done.stdout[-6000:]
    assert "Every number is the same." in done.stdout
    assert done.stdout.splitlines()[-1].lstrip().startswith("examples/flights/story.py"), done.stdout[-2000:]
    assert bare.installed() >= _BUILD
    assert not bare.installed() & _TEST, "make demo needs none of them"


def test_make_test_sets_up_the_rest_and_its_tests_pass(release: str, bare: Bare) -> None:
    goal = ("make", "test", *(f"{name}={text}" for name, text in _SOME.items()))
    if _OWNER[release] != "root":
        bare.let_use_sudo(without_password=False)
        line, named = the_line(bare.run(*goal, user="somebody").stdout)
        assert named <= _TEST
        assert line.startswith("sudo apt-get update && sudo apt-get install ")
        pasted = bare.run("sh", "-c", line)
        assert pasted.returncode == 0, pasted.stdout[-4000:]
    done = bare.run(*goal, user=_OWNER[release])
    assert done.returncode == 0, done.stdout[-6000:]
    assert re.search(r"^=+ .*\b\d+ passed", done.stdout, re.MULTILINE), done.stdout[-2000:]
    assert "skipped" not in done.stdout, done.stdout[-2000:]
    assert bare.installed() >= _BUILD | _TEST
