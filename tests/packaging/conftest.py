"""The wheel of this tree, built once."""

import pytest

from tests.packaging.environment import Wheels


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """It, and all that it needs."""
    return Wheels.gather(tmp_path_factory.mktemp("wheels"))
