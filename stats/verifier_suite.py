"""The suite of the verifier contract."""

from collections.abc import Mapping
from typing import Any

from tokenlaw.spec.capabilities import effective_capabilities, needed
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.suites import DEFAULTS, Profile, Progress, Settings
from tokenlaw.spec.verdicts import Check, Evidence, Verdict
from tokenlaw.spec.verifiers import build_verifier, claim_of
from tokenlaw.stats.law_book import LawBook
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.verifier_checks import CLAIMED_BY, VERIFIER_CHECKS
from tokenlaw.stats.verifier_run import VerifierRun


class VerifierSuite:
    """All checks of the verifier contract; see `tokenlaw.spec.suites.Suite`."""

    contract = VERIFIER
    checks: tuple[Check, ...] = VERIFIER_CHECKS

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
        """Try the scenarios of the seed within the budget."""
        verifier = build_verifier(implementation)
        capabilities = effective_capabilities(implementation, VERIFIER, verifier)
        claims = settings.claims or claim_of(verifier, implementation.name)
        chosen = [check for check in self.checks if check.id in selected]
        asked = frozenset(
            check.id for check in chosen if claims in CLAIMED_BY[check.id] and check.needs <= capabilities
        )
        tried = scenarios(seed, own_drafter="draft" in capabilities, seeded="row-seeds" in capabilities)
        book = LawBook(asked, tried, settings)
        if asked:
            run = VerifierRun(
                verifier,
                claims=claims,
                book=book,
                seed=seed,
                settings=settings,
                budget=settings.budget or profile.requests,
                progress=progress,
            )
            run.run(tried)
        found = {row.check.id: row for row in book.evidence()}
        return [found.get(check.id) or _not_asked(check, claims, capabilities) for check in chosen]

    def replay(self, implementation: Implementation, counterexample: Mapping[str, Any]) -> list[Evidence]:
        """Run the scenario of a counterexample again."""
        raise NotImplementedError


def _not_asked(check: Check, claims: str, capabilities: frozenset[str]) -> Evidence:
    missing = check.needs - capabilities
    reason = needed(VERIFIER, missing) if missing else f"not part of the claim {claims!r}"
    return Evidence(check, Verdict.NOT_SUPPORTED, message=reason)
