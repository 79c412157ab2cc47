"""The library for whole decoding loops; `tokenlaw.api` has all other contracts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenlaw.api import earlier_from, factory_of
from tokenlaw.in_process import How, check_here
from tokenlaw.report import Report
from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.decoders import decoder_factory
from tokenlaw.spec.suites import Settings


def check_decoder(
    decoder: Any,
    *,
    capabilities: Iterable[str] | None = None,
    alpha: float = 1e-9,
    budget: int | None = None,
    tolerance: float = 0.0,
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    deviations: Path | str | None = None,
    continued: Report | Path | str | None = None,
    controls: bool = True,
    raises: bool = True,
) -> Report:
    """Audit a whole decoding loop (`tokenlaw.spec.decoder_contract.Decoder`) in this process.

    Sessions of requests whose every token is certain are compared with target-only decoding; the laws of
    small situations are proved, or sampled where they can't be.

    Parameters
    ----------
    decoder : a factory of decoders, which gets a `DecoderConfig` with the models; what it returns has a
        method ``decode(request, *, seed)``, or is such a function. A decoder itself will do if it tells the
        law of its own target (``target_law``).
    capabilities : optional capabilities that are claimed; found by members if None. What a request may ask
        for (``sampling``, ``penalties``, ``stop``, ``grammar``, ``samples``) can only be declared.
    alpha : probability that the whole run refutes an exact decoder.
    budget : samples of laws that can't be proved, at most; the profile's number if None.
    tolerance : total variation up to which a law may differ, for arithmetic that is part of the law.
    profile, seed, only, deviations, controls, raises : as `check_block_manager`.
    continued : an earlier report of this decoder, or its JSON file: its evidence counts along.

    Raises
    ------
    Refuted, Inconclusive, BadUse
        As `check_block_manager`; bad use is also an earlier report that can't be continued.
    """
    __tracebackhide__ = True
    words = "factory of decoders: give a function or a class, DecoderConfig -> decoder"
    factory = factory_of(decoder, decoder_factory, "the decoder", words)
    return check_here(
        DECODER,
        factory,
        offered=decoder,
        capabilities=capabilities,
        settings=Settings(alpha=alpha, budget=budget, tolerance=tolerance),
        earlier=None if continued is None else earlier_from(continued),
        how=How(profile, seed, only, deviations, controls, raises),
    )
