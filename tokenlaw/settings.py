"""What a user may set (`tokenlaw.spec.suites.Settings`): refused where it can't be used, and as options."""

# ruff: noqa: PLC0415 - claims and devices need torch, whoever writes a command line does without

from collections.abc import Callable
from typing import Any

from tokenlaw.errors import BadUse, described
from tokenlaw.spec.suites import DEFAULTS, Settings

_RANGES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("alpha", lambda value: 0 < value < 1, "a number between 0 and 1"),
    ("budget", lambda value: value is None or value >= 1, "1 or more requests"),
    ("tolerance", lambda value: 0 <= value < 1, "0 or a number below 1"),
)
_OPTIONS = ("device", "claims", "alpha", "budget", "tolerance")


def require_in_range(settings: Settings) -> None:
    """Raise `BadUse` for a number out of its range, NaN included, which JSON couldn't carry."""
    for name, accepted, expected in _RANGES:
        if not accepted(getattr(settings, name)):
            raise BadUse(f"{name} {getattr(settings, name)}: expected {expected}")


def require_usable_settings(settings: Settings) -> None:
    """Raise `BadUse` for a number out of its range, an unknown claim, or a device that isn't there."""
    import torch

    from tokenlaw.checks import did_you_mean
    from tokenlaw.spec.generation_contracts import CLAIMS

    require_in_range(settings)
    if settings.claims is not None and settings.claims not in CLAIMS:
        raise BadUse(f"unknown claim {settings.claims!r}; {did_you_mean(settings.claims, CLAIMS)}")
    try:
        torch.ones(1, device=settings.device).tolist()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadUse(f"device {settings.device!r} can't be used here: {described(error)}") from None


def as_options(settings: Settings) -> list[str]:
    """The words of a command line that give these settings; none for the defaults.

    >>> as_options(Settings(device="cuda", tolerance=0.001))
    ['--device', 'cuda', '--tolerance', '0.001']
    """
    words: list[str] = []
    for name in _OPTIONS:
        if getattr(settings, name) != getattr(DEFAULTS, name):
            words += [f"--{name}", str(getattr(settings, name))]
    return words


def as_data(settings: Settings) -> dict[str, Any]:
    """The settings as plain data, as a report has them."""
    return {name: getattr(settings, name) for name in _OPTIONS}
