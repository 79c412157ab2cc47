"""The suite for KV stores: generated traces, and the replay of one saved trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tokenlaw.properties.exploration import explore
from tokenlaw.properties.frames import filmed, with_frames
from tokenlaw.properties.judging import judge, judgement_of
from tokenlaw.properties.kv_store_frames import film
from tokenlaw.properties.kv_store_payload import dtype_of
from tokenlaw.properties.kv_store_run import KV_STORE_CHECKS, needed_capabilities, run_trace
from tokenlaw.properties.kv_store_strategy import MAX_OPERATIONS, Sizes, kv_store_traces, rolled_store_trace
from tokenlaw.properties.replaying import factory_of, require, trace_of
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.trace import Trace, TraceError
from tokenlaw.spec.announcing import announce
from tokenlaw.spec.capabilities import effective_capabilities
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, Implementation
from tokenlaw.spec.suites import DEFAULTS, Profile, Progress, Settings, ignore
from tokenlaw.spec.verdicts import Check, Evidence


@dataclass(frozen=True)
class KVStoreSuite:
    """All checks of the KV store contract; see `tokenlaw.spec.suites.Suite`.

    Parameters
    ----------
    dtype : of the stores that are built, as in `CacheConfig`: float32, float16 or bfloat16.
    """

    dtype: str = "float32"
    contract: str = KV_STORE
    checks: tuple[Check, ...] = KV_STORE_CHECKS

    def run(
        self,
        implementation: Implementation,
        *,
        profile: Profile,
        seed: int,
        selected: frozenset[str],
        progress: Progress,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Explore with generated traces."""
        factory = factory_of(implementation, KV_STORE)
        config = CacheConfig(device=settings.device, dtype=self.dtype)
        capabilities = effective_capabilities(implementation, KV_STORE, factory(config))

        def run(trace: Trace, muted: frozenset[str]) -> Outcome:
            return run_trace(factory, trace, capabilities, muted)

        sizes = Sizes(settings.device, self.dtype, min(MAX_OPERATIONS, profile.max_operations))
        found = explore(
            self.checks,
            kv_store_traces(capabilities, sizes),
            partial(rolled_store_trace, capabilities, sizes),
            run,
            profile=profile,
            seed=seed,
            selected=selected,
            capabilities=capabilities,
            progress=progress,
            before_run=announce,
        )
        return filmed(found, KV_STORE, film, factory, capabilities)

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run one saved trace with nothing muted; the trace says on which device.

        Raises
        ------
        TraceError
            The data isn't a trace of this contract, or the target lacks a capability that it needs.
        """
        trace = trace_of(counterexample, KV_STORE)
        _refuse_unbuildable(trace.config)
        factory = factory_of(implementation, KV_STORE)
        capabilities = effective_capabilities(implementation, KV_STORE, factory(trace.config))
        require(needed_capabilities(trace), capabilities, implementation)
        announce(trace)
        progress("traces", 0, 1)
        outcome, frames = film(factory, trace, capabilities)
        progress("traces", 1, 1)
        return with_frames(judge(self.checks, capabilities, judgement_of(outcome, trace)), frames)


def _refuse_unbuildable(config: CacheConfig) -> None:
    """Raise `TraceError` when no store of this dtype on this device can be judged here."""
    dtype_of(config)
    try:
        torch.empty(1, device=config.device).tolist()
    except (RuntimeError, AssertionError, ImportError):  # unknown; torch built without it; no plug-in for it
        raise TraceError(
            f"counterexample: there is no device {config.device!r} here to hold tensors"
        ) from None
