"""Options and settings that all tests share."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A machine may be as slow or as busy as it is: no test has a deadline.
settings.register_profile("own", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("own")
settings.register_profile("thorough", max_examples=2000)
# The same examples in every run of CI; new ones at a desk.
settings.register_profile("usual", max_examples=200, derandomize="CI" in os.environ)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

TIERS = ("exhaustive", "gpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        help="run the tests of this tier alone: exhaustive takes all 2^32 inputs of each format, "
        "gpu needs one",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--tier")

    def tier_of(item: pytest.Item) -> str | None:
        marker = item.get_closest_marker("tier")
        return marker.args[0] if marker else None

    others = [item for item in items if tier_of(item) != wanted]
    items[:] = [item for item in items if tier_of(item) == wanted]
    config.hook.pytest_deselected(items=others)
