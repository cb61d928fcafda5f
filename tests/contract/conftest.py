"""Every test of the contract runs in each framework that it names by its fixture."""

from __future__ import annotations

import pytest

from tests.contract.drivers import FRAMEWORKS, KINDS, Driver, driver


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Driver:
    """Each framework with its chat model."""
    return driver(request.param)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Driver:
    """Each framework with each kind of its models."""
    return driver(request.param)
