"""Several suites of one contract as one: the traces and the laws of decoders."""

from collections.abc import Mapping
from typing import Any

from tokenlaw.properties.decoder_suite import DecoderTraces
from tokenlaw.spec.contracts import Implementation
from tokenlaw.spec.sessions import SCHEMA as SESSION
from tokenlaw.spec.suites import DEFAULTS, CounterexampleError, Profile, Progress, Settings, Suite, ignore
from tokenlaw.spec.verdicts import Check, Evidence
from tokenlaw.stats.decoder_places import SCHEMA as LAW
from tokenlaw.stats.decoder_suite import DecoderLaws


class JoinedSuite:
    """One after the other; see `tokenlaw.spec.suites.Suite`.

    Parameters
    ----------
    parts : the schema of its counterexamples -> suite; all of one contract, and no check in two of them.

    Raises
    ------
    ValueError
        The parts are of several contracts, or two have a check of one id.
    """

    def __init__(self, parts: Mapping[str, Suite]) -> None:
        contracts = {suite.contract for suite in parts.values()}
        if len(contracts) != 1:
            raise ValueError(f"suites of one contract can be joined, not of {sorted(contracts)}")
        self._parts = parts
        (self.contract,) = contracts
        self.checks: tuple[Check, ...] = tuple(check for suite in parts.values() for check in suite.checks)
        if len({check.id for check in self.checks}) < len(self.checks):
            raise ValueError("two of the suites have a check of one id")

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
        """Run those parts that have a selected check."""
        evidence = []
        for suite in self._parts.values():
            own = selected & {check.id for check in suite.checks}
            if own:
                evidence += suite.run(
                    implementation,
                    profile=profile,
                    seed=seed,
                    selected=frozenset(own),
                    progress=progress,
                    settings=settings,
                )
        return evidence

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Give the counterexample to the part whose schema it has.

        Raises
        ------
        CounterexampleError
            No part has it, or the part refuses it.
        """
        schema = str(counterexample.get("schema"))
        if schema not in self._parts:
            known = " and ".join(map(repr, self._parts))
            found = f"schema {schema!r} of a {self.contract}"
            raise CounterexampleError(f"counterexample: {found}; this version of tokenlaw reads {known}")
        return self._parts[schema].replay(
            implementation, counterexample, progress=progress, settings=settings
        )


def decoder_suite() -> JoinedSuite:
    """All checks of the decoder contract."""
    return JoinedSuite({SESSION: DecoderTraces(), LAW: DecoderLaws()})
