"""The library: audit one's own code in one's own process, with one call in a test.

>>> import tokenlaw
>>> def test_my_manager():
...     tokenlaw.check_block_manager(lambda config: MyManager(config))
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tokenlaw.arguments import wrong
from tokenlaw.earlier import Earlier, earlier_of, read_earlier
from tokenlaw.errors import BadUse
from tokenlaw.in_process import How, check_here
from tokenlaw.report import Report
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, PAGED_ATTENTION, VERIFIER
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.tensor_checks import kind_of
from tokenlaw.spec.verifiers import verifier_factory
from tokenlaw.targets import asked

_VERIFIER_IS = "verifier: give an object with verify, or a function of (batch, *, seed)"


def check_block_manager(
    factory: Callable[..., Any],
    *,
    capabilities: Iterable[str] | None = None,
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    deviations: Path | str | None = None,
    controls: bool = True,
    raises: bool = True,
) -> Report:
    """Audit a block manager (`tokenlaw.spec.contracts.BlockManager`) in this process.

    Parameters
    ----------
    factory : builds a fresh manager from a `CacheConfig`.
    capabilities : optional capabilities that are claimed; found by looking for their methods if None.
    profile : ``dev``, ``ci`` or ``deep``: how much is tried.
    seed : the same seed repeats the run.
    only : glob over check ids.
    deviations : file of known deviations, which don't count (``docs/known-deviations.md``).
    controls : whether our reference, which must hold, and the factory's objects in a broken wrapper, which
        must be refuted, are asked as well; where one of them fails, the audit is void.
    raises : if false, the report is returned whatever it says.

    Raises
    ------
    Refuted
        A check was refuted.
    Inconclusive
        No check was refuted, but one is unknown (a crash) or was not exercised, or a control failed.
    BadUse
        The factory returns the wrong thing, or there is no such profile, capability or check.
    """
    __tracebackhide__ = True
    return check_here(
        BLOCK_MANAGER,
        factory,
        capabilities=capabilities,
        how=How(profile, seed, only, deviations, controls, raises),
    )


def check_kv_store(
    factory: Callable[..., Any],
    *,
    capabilities: Iterable[str] | None = None,
    device: str = "cpu",
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    deviations: Path | str | None = None,
    controls: bool = True,
    raises: bool = True,
) -> Report:
    """Audit a KV store (`tokenlaw.spec.contracts.KVStore`) on a torch device; as `check_block_manager`."""
    __tracebackhide__ = True
    return check_here(
        KV_STORE,
        factory,
        capabilities=capabilities,
        settings=Settings(device=device),
        how=How(profile, seed, only, deviations, controls, raises),
    )


def check_paged_attention(
    factory: Callable[..., Any],
    *,
    capabilities: Iterable[str] | None = None,
    device: str = "cpu",
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    deviations: Path | str | None = None,
    controls: bool = True,
    raises: bool = True,
) -> Report:
    """Audit paged attention (`tokenlaw.spec.contracts.PagedAttention`); as `check_block_manager`.

    ``factory`` takes no arguments, ``device`` is the torch device that its tensors are on.
    """
    __tracebackhide__ = True
    return check_here(
        PAGED_ATTENTION,
        factory,
        capabilities=capabilities,
        settings=Settings(device=device),
        how=How(profile, seed, only, deviations, controls, raises),
    )


def check_verifier(
    verifier: Any,
    *,
    claims: str | None = None,
    capabilities: Iterable[str] | None = None,
    alpha: float = 1e-9,
    budget: int | None = None,
    tolerance: float = 0.0,
    device: str = "cpu",
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    deviations: Path | str | None = None,
    continued: Report | Path | str | None = None,
    controls: bool = True,
    raises: bool = True,
) -> Report:
    """Test the laws of one step of speculative decoding in this process.

    Parameters
    ----------
    verifier : an object with a method ``verify`` (`tokenlaw.spec.generation_contracts.Verifier`), a class or
        a factory of one without arguments, or a plain function ``verify(batch, *, seed)``.
        `tokenlaw.batch_of_laws` makes a batch to try it by hand.
    claims : what the verifier is held to, in place of its attribute ``claims`` (without one: ``textbook``).
        ``textbook``: tokens and accepted length have the joint law of chain rejection sampling. ``block``:
        they have that of block verification. ``exact``: only the emitted text has the law of the target,
        which the first two imply. ``approximate``: nothing; the report says how far it is from exact.
    capabilities : optional capabilities that are claimed; found by members and keywords if None.
    alpha : probability that the whole run refutes a verifier that keeps its claim.
    budget : rows that the verifier is given at most, beside those of its broken wrapper (``controls``); the
        profile's number if None.
    tolerance : total variation up to which a law may differ, for arithmetic that is part of the law.
    device : torch device that all tensors are on.
    profile, seed, only, deviations, controls, raises : as `check_block_manager`.
    continued : an earlier report of this verifier, or its JSON file: its evidence counts along.

    Raises
    ------
    Refuted, Inconclusive, BadUse
        As `check_block_manager`; bad use is also an earlier report that can't be continued.

    Examples
    --------
    >>> from tokenlaw import check_verifier
    >>> def verify(batch, *, seed):
    ...     return batch.draft_tokens.new_zeros(batch.shape[0], batch.shape[1] + 1)  # always token 0
    >>> check_verifier(verify, only="law/protocol", controls=False, raises=False).verdict
    <Verdict.REFUTED: 'refuted'>
    """
    __tracebackhide__ = True
    factory = factory_of(verifier, verifier_factory, "the verifier", _VERIFIER_IS)
    return check_here(
        VERIFIER,
        factory,
        offered=verifier,
        capabilities=capabilities,
        settings=Settings(device=device, claims=claims, alpha=alpha, budget=budget, tolerance=tolerance),
        earlier=None if continued is None else earlier_from(continued),
        how=How(profile, seed, only, deviations, controls, raises),
    )


def factory_of(offered: Any, find: Callable[[Any], Any], who: str, expected: str) -> Callable[..., Any]:
    """The factory that was offered, or that ``find`` sees in it; raises `BadUse` if it is none."""
    __tracebackhide__ = True
    factory: Callable[..., Any] = asked(who, lambda: find(offered)) or offered
    if not callable(factory):
        raise BadUse(f"{kind_of(offered)} is no {expected}")
    return factory


def earlier_from(continued: Report | Path | str) -> Earlier:
    """The evidence of an earlier report, or of its JSON file; `BadUse` for anything else."""
    if isinstance(continued, Report):
        return earlier_of(continued.to_data(), "the earlier report")
    if not isinstance(continued, str | os.PathLike):
        raise wrong("continued", continued, "a report, or the path of its JSON file")
    return read_earlier(Path(continued))
