"""The wheel of this tree, built once; a Spark without it, and an environment that is packed for jobs."""

import tarfile
from pathlib import Path

import pytest

from tests.packaging import environment
from tests.packaging.environment import Wheels, run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It alone."""
    return environment.built(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def wheels(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """It, and all that it needs."""
    return Wheels.gather(wheel, tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="session")
def spark_folder(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Spark without pylog, as clusters have it."""
    python, _ = wheels.environment(tmp_path_factory.mktemp("spark") / "environment", "[spark]")
    run(python, "-m", "pip", "uninstall", "--yes", "--quiet", "pylog-spark")
    return Path(run(python, "-c", "import pyspark; print(*pyspark.__path__)").strip())


@pytest.fixture(scope="session")
def packed(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``environment``, which has the wheel and no Spark, and ``environment.tar.gz`` of it."""
    folder = tmp_path_factory.mktemp("job")
    wheels.environment(folder / "environment")
    with tarfile.open(folder / "environment.tar.gz", "w:gz", compresslevel=1) as tar:
        tar.add(folder / "environment", ".")
    return folder
