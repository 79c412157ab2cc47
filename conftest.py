"""Hypothesis profiles: ``dev`` (quick), ``ci`` (derandomised), ``deep``; choose with HYPOTHESIS_PROFILE."""

import os

from hypothesis import HealthCheck, settings

_SLOW_FIRST_IMPORT = [HealthCheck.too_slow]

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=_SLOW_FIRST_IMPORT)
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("deep", parent=settings.get_profile("dev"), max_examples=2_000)

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
settings.load_profile(PROFILE)


def pytest_report_header() -> str:
    """Say which profile runs, and where its randomness comes from."""
    source = "derandomised" if settings().derandomize else "random; repeat with --hypothesis-seed"
    return f"hypothesis profile {PROFILE} ({source})"
