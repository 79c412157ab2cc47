"""The suite for block managers: every rule of `tokenlaw.properties.rules`, explored or replayed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from tokenlaw.properties.announcing import announce
from tokenlaw.properties.block_manager_run import needed_capabilities, run_trace
from tokenlaw.properties.exploration import explore
from tokenlaw.properties.judging import judge, judgement_of
from tokenlaw.properties.rules import BLOCK_MANAGER_CHECKS
from tokenlaw.properties.running import Outcome, Profile, Progress
from tokenlaw.properties.strategies import traces
from tokenlaw.properties.trace import Trace, TraceError, decode
from tokenlaw.spec.capabilities import effective_capabilities
from tokenlaw.spec.contracts import BLOCK_MANAGER, BlockManager, CacheConfig, ContractError, Implementation
from tokenlaw.spec.verdicts import Check, Evidence


@dataclass(frozen=True)
class BlockManagerSuite:
    """All checks of the block manager contract; see `tokenlaw.properties.running.Suite`."""

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
    ) -> list[Evidence]:
        """Explore with generated traces."""
        factory = _factory(implementation)
        capabilities = effective_capabilities(implementation, BLOCK_MANAGER, factory(CacheConfig()))

        def run(trace: Trace, muted: frozenset[str]) -> Outcome:
            return run_trace(factory, trace, capabilities, muted=muted)

        return explore(
            self.checks,
            traces(capabilities, profile),
            run,
            profile=profile,
            seed=seed,
            selected=selected,
            capabilities=capabilities,
            progress=progress,
            before_run=announce,
        )

    def replay(self, implementation: Implementation, counterexample: Mapping[str, Any]) -> list[Evidence]:
        """Run one saved trace, nothing muted, everything read back after every operation.

        Raises
        ------
        TraceError
            The data isn't a trace of this contract, or the target lacks a capability that it needs.
        """
        trace = decode(msgspec.json.encode(counterexample), "counterexample")
        factory = _factory(implementation)
        capabilities = effective_capabilities(implementation, BLOCK_MANAGER, factory(trace.config))
        _refuse_unrunnable(trace, implementation, capabilities)
        announce(trace)
        outcome = run_trace(factory, trace, capabilities, read_back_every=1)
        return judge(self.checks, capabilities, judgement_of(outcome, trace))


def _factory(implementation: Implementation) -> Callable[[CacheConfig], BlockManager]:
    factory = implementation.factories.get(BLOCK_MANAGER)
    if factory is None:
        offered = ", ".join(sorted(implementation.factories)) or "nothing"
        raise ContractError(f"{implementation.name}: offers no {BLOCK_MANAGER} (it offers {offered})")
    return factory


def _refuse_unrunnable(trace: Trace, implementation: Implementation, capabilities: frozenset[str]) -> None:
    if trace.contract != BLOCK_MANAGER:
        raise TraceError(f"counterexample: it is a trace of a {trace.contract}, not of a {BLOCK_MANAGER}")
    if not trace.operations:
        raise TraceError("counterexample: it has no operations")
    missing = needed_capabilities(trace) - capabilities
    if missing:
        raise TraceError(
            f"counterexample: it needs {', '.join(sorted(missing))}, which {implementation.name} doesn't "
            f"offer; replay it on a target that does"
        )
