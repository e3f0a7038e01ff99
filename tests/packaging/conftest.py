"""The wheel of this tree, built once."""

from pathlib import Path

import pytest

from tests.packaging import environment
from tests.packaging.environment import Wheels


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It alone."""
    return environment.built(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def wheels(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """It, and all that it needs."""
    return Wheels.gather(wheel, tmp_path_factory.mktemp("wheels"))
