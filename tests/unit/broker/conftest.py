"""Brokers that share a store in memory (`shared_world`)."""

import pytest

from tests.unit.broker.shared_world import Member, World, turn


@pytest.fixture
def world():
    return World()


@pytest.fixture
def members(world, tmp_path):
    """Brokers 1, 2, 3."""
    started = [Member(world, number, tmp_path / str(number)) for number in (1, 2, 3)]
    turn(started)
    yield started
    for process in started:
        process.close()
