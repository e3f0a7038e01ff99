"""Whether this tree can be released: ``python -m tests.packaging.release DIST``, which ``make release-check`` runs after it has built DIST.

Each check gives sentences about what is wrong; all are made. Exit code 0 only when nothing is wrong. It reads what is there, and writes
nothing but the wheel that it builds of the source distribution, in a temporary folder.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "broker_native" / "Cargo.toml"
PACKAGES = ("pylog_spark", "pyspark_pylog")
NATIVE = "pylog_spark/_native.abi3.so"
#: What a program that links them may be given on under, with the licence texts that the wheel's SBOM names.
LICENCES = frozenset({
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
})  # fmt: skip
#: The oldest glibc that a wheel for Linux is to run on.
MANYLINUX = re.compile(r"manylinux_2_17_\w+")
#: All that a wheel for musl may need. musl's loader takes itself for it, whatever its file is called.
MUSL = "libc.so"


def run(*words: object, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command, and have what it prints."""
    command = [str(word) for word in words]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def versions() -> dict[str, str]:
    """The version of the package by the file that says it."""
    places = {
        "pyproject.toml": r'^version = "(.+)"$',
        "pylog_spark/__init__.py": r'^__version__ = "(.+)"$',
        "broker_native/Cargo.toml": r'^\[workspace\.package\]\nversion = "(.+)"$',
        "broker_native/Cargo.lock": r'^name = "pylog-native"\nversion = "(.+)"$',
        "CHANGELOG.md": r"^## ([\d.]+\w*) - ",
        "recipe/recipe.yaml": r"^  version: ([\d.]+\w*)$",
        "deploy/compose.yaml": r"^  image: pylog:(.+)$",
        "deploy/kubernetes/pylog.yaml": r"^          image: pylog:(.+)$",
    }
    found = {}
    for name, form in places.items():
        match = re.search(form, (ROOT / name).read_text(), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def disagreeing(found: dict[str, str]) -> list[str]:
    """A sentence when `versions` are not all the same."""
    if len(set(found.values())) == 1:
        return []
    return ["The versions differ: " + ", ".join(f"{name} has {version}" for name, version in found.items()) + "."]


def unfinished_tree() -> list[str]:
    """Changes that are in no commit; a changelog without the day of the release; no data for the next release's test of upgrades."""
    wrong = []
    if changed := run("git", "status", "--porcelain").stdout.splitlines():
        wrong.append(f"{len(changed)} files are not committed, the first is {changed[0][3:]}.")
    if re.search(r"^## [\d.]+\w* - unreleased$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        wrong.append("CHANGELOG.md says unreleased: write the day of the release there.")
    version = versions()["pyproject.toml"]
    if not (ROOT / "tests" / "upgrade" / "data" / version).is_dir():
        wrong.append(f"tests/upgrade/data/{version} is missing: python -m tests.upgrade.write.")
    return wrong


def wrong_description() -> list[str]:
    """Classifiers that PyPI does not know; no address of the project; a README that says that the package is not on PyPI."""
    from trove_classifiers import classifiers

    project = (ROOT / "pyproject.toml").read_text()
    (listed,) = re.findall(r"^classifiers = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    wrong = [
        f"PyPI does not know the classifier {each}."
        for each in re.findall(r'"(.+)"', listed)
        if each not in classifiers
    ]
    if "\n[project.urls]\n" not in project:
        wrong.append(
            "pyproject.toml has no [project.urls]: write where the source, the documentation and the issues are."
        )
    if "not on PyPI yet" in (ROOT / "README.md").read_text():
        wrong.append("README.md says that this version is not on PyPI yet.")
    return wrong


def wanted_files() -> set[str]:
    """What a wheel has of the packages: each file that git knows, and the native half."""
    return {*run("git", "ls-files", *PACKAGES).stdout.split(), NATIVE}


def wrong_contents(wheel: Path) -> list[str]:
    """What a wheel lacks or has too much; what it does not say of itself."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (about,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        folder = about.partition("/")[0]
        metadata = packed.read(about).decode()
        entries = packed.read(f"{folder}/entry_points.txt").decode()
    found = {name for name in names if not name.startswith(f"{folder}/") and not name.endswith("/")}
    wrong = [f"{wheel.name} lacks {name}." for name in sorted(wanted_files() - found)]
    wrong += [f"{wheel.name} has {name}, which is none of its files." for name in sorted(found - wanted_files())]
    said = f"Version: {versions()['pyproject.toml']}"
    for what, there in {
        said: said in metadata.splitlines(),
        "its licence": f"{folder}/licenses/LICENSE" in names,
        "the licences of its crates (an SBOM)": any(name.startswith(f"{folder}/sboms/") for name in names),
        "the command pylog": "pylog=pylog_spark.cli.main:main" in entries.replace(" ", ""),
        "the plugin of pytest": "pylog=pylog_spark.testing.plugin" in entries.replace(" ", ""),
    }.items():
        if not there:
            wrong.append(f"{wheel.name} lacks {what}.")
    return wrong


def wrong_platform(wheel: Path) -> list[str]:
    """A wheel for Linux that needs a newer system than it should, as auditwheel sees it, or more of one than it should."""
    if "musllinux" in wheel.name:
        return beside_musl(wheel)
    if "linux" not in wheel.name:
        return []
    done = run(sys.executable, "-m", "auditwheel", "show", wheel)
    said = " ".join(done.stdout.split())
    tag = re.search(r'following platform tag: "(\S+)"', said)
    if tag is None or not MANYLINUX.fullmatch(tag[1]):
        return [f"{wheel.name} is of {tag[1] if tag else done.stderr.strip()}: build it by make wheels."]
    return []


def beside_musl(wheel: Path) -> list[str]:
    """A wheel for musl that needs another library. auditwheel would look for musl's where this machine has its own C library."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as packed:
        said = run("readelf", "--dynamic", packed.extract(NATIVE, folder)).stdout
    needed = sorted(re.findall(r"\(NEEDED\).*\[(.+)\]", said))
    if needed == [MUSL]:
        return []
    return [f"{wheel.name} needs {', '.join(needed) or 'no library'}, not only {MUSL}: build it by make wheels."]


def allowed(licence: str) -> bool:
    """Whether an SPDX expression leaves a choice that is among `LICENCES`."""
    text = re.sub(r" WITH [\w.-]+", "", licence).replace("/", " OR ").replace("(", " ( ").replace(")", " ) ")
    words = {"AND": "and", "OR": "or", "(": "(", ")": ")"}
    return bool(eval(" ".join(words.get(word, str(word in LICENCES)) for word in text.split())))


def wrong_licences() -> list[str]:
    """Crates whose licence is none of those that a wheel may be given on under."""
    done = run("cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", MANIFEST)
    if done.returncode != 0:
        return [f"cargo metadata failed: {done.stderr.strip()}"]
    packages = json.loads(done.stdout)["packages"]
    return [
        f"The crate {package['name']} has the licence {package['license']}: look whether a wheel may have it."
        for package in packages
        if not allowed(package["license"] or "none")
    ]


def unreadable_readme() -> list[str]:
    """A README that PyPI would not show."""
    from readme_renderer import markdown

    shown = markdown.render((ROOT / "README.md").read_text(), variant="GFM")
    return [] if shown and "<h1" in shown else ["README.md cannot be rendered."]


def wrong_source(sdist: Path) -> list[str]:
    """A source distribution that builds no wheel with the right contents. Builds with the profile dev, some minutes.

    What this tree has compiled is out of its sight: cargo would take that for the same, and a file that is missing would not be missed.
    """
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(sdist) as packed:
            packed.extractall(name, filter="data")
        source = Path(name, sdist.name.removesuffix(".tar.gz"))
        if (source / "tests").exists() or not (source / "LICENSE").exists():
            return [f"{sdist.name} has tests, or no licence."]
        words = ("build", "--locked", "--profile", "dev", "--quiet", "--out", Path(name))
        done = run(Path(sys.executable).with_name("maturin"), *words, cwd=source, CARGO_TARGET_DIR=f"{name}/target")
        wheels = list(Path(name).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            return [f"{sdist.name} builds no wheel: {done.stderr[-2000:]}"]
        return wrong_contents(wheels[0])


def main(words: Sequence[str]) -> int:
    """Make all checks on what is in a folder; the exit code."""
    dist = Path(words[0])
    version = versions()["pyproject.toml"]
    wheels = sorted(dist.glob(f"pylog_spark-{version}-*.whl"))
    sdists = sorted(dist.glob(f"pylog_spark-{version}.tar.gz"))
    checks: list[tuple[str, Callable[[], list[str]]]] = [
        ("versions agree", lambda: disagreeing(versions())),
        ("all is committed and dated", unfinished_tree),
        ("licences", wrong_licences),
        ("README renders", unreadable_readme),
        ("what PyPI shows", wrong_description),
        ("built", lambda: [] if wheels and sdists else [f"{os.fspath(dist)} has no wheel, or no source distribution."]),
    ]
    for wheel in wheels:
        checks.append((f"contents of {wheel.name}", partial(wrong_contents, wheel)))
        checks.append((f"platform of {wheel.name}", partial(wrong_platform, wheel)))
    checks += [(f"{sdist.name} builds a wheel", partial(wrong_source, sdist)) for sdist in sdists]
    code = 0
    for what, check in checks:
        wrong = check()
        code = code or int(bool(wrong))
        print(f"{'WRONG' if wrong else 'ok'}: {what}", *wrong, sep="\n    ", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
