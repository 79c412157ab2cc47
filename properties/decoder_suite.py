"""The suite of sessions for decoders: generated ones, and the replay of a saved one."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tokenlaw.properties.decoder_checks import DECODER_CHECKS, needed_capabilities
from tokenlaw.properties.decoder_run import run_session
from tokenlaw.properties.decoder_simpler import SESSIONS
from tokenlaw.properties.decoder_strategy import MAX_OPERATIONS, rolled_session, sessions
from tokenlaw.properties.decoder_words import explain, tell
from tokenlaw.properties.exploration import explore
from tokenlaw.properties.judging import judge, judgement_of
from tokenlaw.properties.replaying import factory_of, require
from tokenlaw.properties.running import Outcome
from tokenlaw.spec.announcing import announce
from tokenlaw.spec.capabilities import effective_capabilities
from tokenlaw.spec.contracts import DECODER, Implementation
from tokenlaw.spec.decoders import built_decoder, default_config, vocabulary_of
from tokenlaw.spec.sessions import Abort, Fork, Session, SessionError, Submit, session_of
from tokenlaw.spec.suites import DEFAULTS, Profile, Progress, Settings, ignore
from tokenlaw.spec.verdicts import Check, Evidence

_WEIGHT = 2
"""A session takes as long as so many traces of caches: its requests decode whole texts."""


class DecoderTraces:
    """Checks of decoders that need no statistics; see `tokenlaw.spec.suites.Suite`."""

    contract = DECODER
    checks: tuple[Check, ...] = DECODER_CHECKS

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
        """Explore with generated sessions."""
        factory = factory_of(implementation, DECODER)
        config = default_config()
        built = built_decoder(factory, implementation.name, config)
        capabilities = effective_capabilities(implementation, DECODER, built)
        own = "own-models" in capabilities
        size = vocabulary_of(built, capabilities, config.vocabulary_size) if own else None

        longest = min(MAX_OPERATIONS, profile.max_operations)

        def run(session: Session, muted: frozenset[str]) -> Outcome:
            return run_session(factory, session, capabilities, muted)

        return explore(
            self.checks,
            sessions(capabilities, vocabulary_size=size, max_operations=longest),
            partial(rolled_session, capabilities, size, longest),
            run,
            profile=replace(profile, examples=max(1, profile.examples // _WEIGHT)),
            seed=seed,
            selected=selected,
            capabilities=capabilities,
            progress=progress,
            before_run=announce,
            describe=explain,
            tell=tell,
            simplifier=SESSIONS,
        )

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run one saved session with nothing muted.

        Raises
        ------
        SessionError
            The data isn't a session, or the target lacks a capability that it needs.
        """
        session = session_of(counterexample)
        if not session.operations:
            raise SessionError("counterexample: it has no operations")
        factory = factory_of(implementation, DECODER)
        built = built_decoder(factory, implementation.name, session.config)
        capabilities = effective_capabilities(implementation, DECODER, built)
        require(needed_by(session), capabilities, implementation)
        announce(session)
        progress("sessions", 0, 1)
        outcome = run_session(factory, session, capabilities)
        progress("sessions", 1, 1)
        return judge(self.checks, capabilities, judgement_of(outcome, session, explain, tell))


def needed_by(session: Session) -> frozenset[str]:
    """Capabilities without which a session can't be carried out."""
    needed: set[str] = set() if session.target is not None else {"own-models"}
    for operation in session.operations:
        if isinstance(operation, Submit):
            needed |= needed_capabilities(operation.request)
        elif isinstance(operation, Fork):
            needed |= {"requests", "fork"}
        elif isinstance(operation, Abort):
            needed |= {"requests", "abort"}
        else:
            needed.add("requests")
    return frozenset(needed)
