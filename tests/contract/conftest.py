"""Every test of the contract runs in each framework that it names by its fixture."""

from __future__ import annotations

import pytest

from tests.contract.drivers import FRAMEWORKS, KINDS, STYLES, Driver, driver


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Driver:
    """Each framework with its chat model."""
    return driver(request.param)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Driver:
    """Each framework with each kind of its models."""
    return driver(request.param)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Ask each kind of model in two of the four ways: together those of a framework cover all ways."""
    left = []
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if given.get("style") in STYLES and given.get("kind") in KINDS:
            asked = STYLES.index(given["style"]) in (0, 3)
            if asked != (KINDS.index(given["kind"]) in (0, 3)):
                left.append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
