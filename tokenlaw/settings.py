"""What a user may set (`tokenlaw.spec.suites.Settings`): refused where it can't be used, and as options."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from tokenlaw.arguments import number_between, shown, whole_number, wrong
from tokenlaw.errors import BadUse, described
from tokenlaw.spec.suites import DEFAULTS, Settings

_LAWS = ("verifier", "decoder")
_USED_BY = {
    "device": ("kv-store", "paged-attention", "verifier"),
    "claims": ("verifier",),
    "alpha": _LAWS,
    "budget": _LAWS,
    "tolerance": _LAWS,
}
"""Option to the contracts whose suites look at it."""

OPTIONS = tuple(_USED_BY)
"""Names of the settings that are options of a command line."""


def plain_settings(settings: Settings) -> Settings:
    """The settings with numbers of Python.

    Raises
    ------
    BadUse
        A number is out of its range, NaN included, which JSON couldn't carry, or a value is of another kind.
    """
    if not isinstance(settings, Settings):
        raise wrong("settings", settings, "tokenlaw.Settings(...)")
    budget = settings.budget
    if budget is not None:
        budget = whole_number("budget", budget, 1, "1 or more requests")
    return replace(
        settings,
        device=_device_name(settings.device),
        alpha=number_between("alpha", settings.alpha, "a number between 0 and 1", zero=False),
        budget=budget,
        tolerance=number_between("tolerance", settings.tolerance, "0 or a number below 1", zero=True),
    )


def _device_name(device: Any) -> str:
    """The name of a device; one of torch's own objects will do."""
    if isinstance(device, str):
        return device
    import torch

    if not isinstance(device, torch.device):
        raise wrong("device", device, "the name of a torch device, such as 'cpu' or 'cuda'")
    return str(device)


def require_usable_settings(settings: Settings) -> None:
    """Raise `BadUse` as `plain_settings`, for an unknown claim, or for a device that isn't there."""
    import torch

    from tokenlaw.checks import did_you_mean
    from tokenlaw.spec.generation_contracts import CLAIMS

    claims, device = settings.claims, plain_settings(settings).device
    if claims is not None and (not isinstance(claims, str) or claims not in CLAIMS):
        raise BadUse(f"unknown claim {shown(claims)}; {did_you_mean(str(claims), CLAIMS)}")
    try:
        torch.ones(1, device=device).tolist()
    except (RuntimeError, AssertionError) as error:
        raise BadUse(f"device {device!r} can't be used here: {described(error)}") from None


def changed(settings: Settings) -> tuple[str, ...]:
    """Names of the settings that aren't the defaults.

    >>> changed(Settings(claims="exact", budget=1_000))
    ('claims', 'budget')
    """
    return tuple(name for name in OPTIONS if getattr(settings, name) != getattr(DEFAULTS, name))


def require_used(given: Collection[str], contracts: Collection[str]) -> None:
    """Raise `BadUse` for an option that none of the contracts that are asked for looks at.

    Parameters
    ----------
    given : names of the settings that somebody chose for this run; defaults are none, nor is what
        ``[tool.tokenlaw]`` says for all runs.
    contracts : those that are run.
    """
    for name in given:
        if not set(_USED_BY[name]) & set(contracts):
            raise BadUse(
                f"option {name}: it is for {_listed(_USED_BY[name])}, but what is asked for is "
                f"{_listed(contracts)}: leave it out"
            )


def _listed(contracts: Collection[str]) -> str:
    """The contracts in words.

    >>> _listed(["kv-store", "verifier", "decoder"])
    'kv-store, verifier and decoder'
    """
    *others, last = contracts
    return f"{', '.join(others)} and {last}" if others else last


def used_by(contracts: Collection[str], settings: Settings) -> Settings:
    """The settings with those that none of the contracts looks at as they are by default.

    >>> used_by(["kv-store"], Settings(device="cuda", alpha=1e-6)) == Settings(device="cuda")
    True
    """
    unused = {name for name, users in _USED_BY.items() if not set(users) & set(contracts)}
    return replace(settings, **{name: getattr(DEFAULTS, name) for name in unused})


def as_options(settings: Settings, given: Collection[str] = ()) -> list[str]:
    """The words of a command line that give these settings; of the defaults only those named in ``given``.

    >>> as_options(Settings(device="cuda", tolerance=0.001), given=["alpha"])
    ['--device', 'cuda', '--alpha', '1e-09', '--tolerance', '0.001']
    """
    words: list[str] = []
    for name in OPTIONS:
        if name in given or name in changed(settings):
            words += [f"--{name}", str(getattr(settings, name))]
    return words


def as_data(settings: Settings) -> dict[str, Any]:
    """The settings as plain data, as a report has them."""
    return {name: getattr(settings, name) for name in OPTIONS}
