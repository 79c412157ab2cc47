"""The suite for block managers: every rule of `tokenlaw.properties.rules`, explored or replayed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tokenlaw.properties.block_manager_run import needed_capabilities, run_trace
from tokenlaw.properties.exploration import explore
from tokenlaw.properties.frames import film, filmed, with_frames
from tokenlaw.properties.judging import judge, judgement_of
from tokenlaw.properties.replaying import factory_of, require, trace_of
from tokenlaw.properties.rules import BLOCK_MANAGER_CHECKS
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.strategies import rolled_trace, traces
from tokenlaw.properties.trace import Trace
from tokenlaw.spec.announcing import announce
from tokenlaw.spec.capabilities import effective_capabilities
from tokenlaw.spec.contracts import BLOCK_MANAGER, CacheConfig, Implementation
from tokenlaw.spec.suites import DEFAULTS, Profile, Progress, Settings, ignore
from tokenlaw.spec.verdicts import Check, Evidence


@dataclass(frozen=True)
class BlockManagerSuite:
    """All checks of the block manager contract; see `tokenlaw.spec.suites.Suite`."""

    contract: str = BLOCK_MANAGER
    checks: tuple[Check, ...] = BLOCK_MANAGER_CHECKS

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
        factory = factory_of(implementation, BLOCK_MANAGER)
        capabilities = effective_capabilities(implementation, BLOCK_MANAGER, factory(CacheConfig()))

        def run(trace: Trace, muted: frozenset[str]) -> Outcome:
            return run_trace(factory, trace, capabilities, muted=muted)

        found = explore(
            self.checks,
            traces(capabilities, profile),
            partial(rolled_trace, capabilities, profile),
            run,
            profile=profile,
            seed=seed,
            selected=selected,
            capabilities=capabilities,
            progress=progress,
            before_run=announce,
        )
        return filmed(found, BLOCK_MANAGER, film, factory, capabilities)

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run one saved trace, nothing muted, everything read back after every operation.

        Raises
        ------
        TraceError
            The data isn't a trace of this contract, or the target lacks a capability that it needs.
        """
        trace = trace_of(counterexample, BLOCK_MANAGER)
        factory = factory_of(implementation, BLOCK_MANAGER)
        capabilities = effective_capabilities(implementation, BLOCK_MANAGER, factory(trace.config))
        require(needed_capabilities(trace), capabilities, implementation)
        announce(trace)
        progress("traces", 0, 1)
        outcome, frames = film(factory, trace, capabilities)
        progress("traces", 1, 1)
        return with_frames(judge(self.checks, capabilities, judgement_of(outcome, trace)), frames)
