"""The suite of the paged attention contract: every check in turn, and the replay of one saved case."""

import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from msgspec import structs

from tokenlaw.properties.attention_cases import AttentionCase, from_data, needed_capabilities
from tokenlaw.properties.attention_checks import ATTENTION_CHECKS, AttentionCheck
from tokenlaw.properties.attention_findings import RuleBrokenError
from tokenlaw.properties.attention_search import Search, evidence_of, judge
from tokenlaw.properties.attention_strategies import SELDOM_TAKEN, Dimensions
from tokenlaw.properties.attention_subject import Subject
from tokenlaw.properties.trace import TraceError
from tokenlaw.spec.announcing import announce_evidence
from tokenlaw.spec.capabilities import effective_capabilities, needed
from tokenlaw.spec.contracts import PAGED_ATTENTION, ContractError, Implementation
from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.spec.suites import DEFAULTS, Profile, Progress, Settings, ignore
from tokenlaw.spec.verdicts import Check, Evidence, Verdict


class AttentionSuite:
    """All checks of `PagedAttention`.

    Parameters
    ----------
    dimensions : sizes and dtypes that are tried; narrow them for a kernel that takes few.

    Each check gets a quarter of the examples of the profile and an equal share of the seconds that are left.
    """

    contract = PAGED_ATTENTION
    checks: tuple[Check, ...] = tuple(entry.check for entry in ATTENTION_CHECKS)

    def __init__(self, dimensions: Dimensions | None = None) -> None:
        self.dimensions = dimensions or Dimensions()

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
        """Evidence for each selected check; see `tokenlaw.spec.suites.Suite`."""
        entries = [entry for entry in ATTENTION_CHECKS if entry.check.id in selected]
        try:
            subject = self._subject(implementation, settings.device)
        except ContractError:
            raise
        except Exception:
            message = f"The factory raised an exception.\n{traceback.format_exc()}"
            return [Evidence(entry.check, Verdict.UNKNOWN, message=message) for entry in entries]
        dimensions = _accepted(subject, self.dimensions)
        # What the first use of torch costs isn't taken from the first check.
        subject.expect(AttentionCase(), subject.make(AttentionCase()))
        spent = Stopwatch()
        claimed, broken = subject.capabilities, ""
        evidence = []
        for index, entry in enumerate(entries):
            progress(entry.check.id, index, len(entries))
            share = (profile.seconds - spent()) / (len(entries) - index)
            if not entry.check.needs <= claimed:
                evidence.append(_not_supported(entry.check, claimed))
                continue
            found = Search(entry, subject, dimensions, share).evidence(profile.examples // 4, seed)
            if found.verdict is Verdict.REFUTED:
                found = replace(found, message=found.message + _possible_cause(broken))
                # The cases of later checks do without what is known to be broken.
                subject.capabilities -= entry.check.needs
                broken = broken or ("" if entry.check.needs else entry.check.id)
            evidence.append(found)
            announce_evidence(found)
        progress(self.contract, len(entries), len(entries))
        return evidence

    def replay(
        self,
        implementation: Implementation,
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run one saved case through every check whose kind of case it is."""
        case = from_data(counterexample)
        subject = self._subject(implementation, settings.device)
        lacking = needed_capabilities(case) - subject.capabilities
        if lacking:
            raise TraceError(
                f"{implementation.name} doesn't declare {', '.join(sorted(lacking))}, which this case needs"
            )
        reached = [
            entry
            for entry in ATTENTION_CHECKS
            if entry.check.needs <= subject.capabilities and _suits(entry, case)
        ]
        evidence = []
        for index, entry in enumerate(reached):
            progress(entry.check.id, index, len(reached))
            evidence.append(_replayed(entry, subject, case))
        progress(self.contract, len(reached), len(reached))
        return evidence

    def _subject(self, implementation: Implementation, device: str) -> Subject:
        build = implementation.factories.get(PAGED_ATTENTION)
        if build is None:
            raise ContractError(
                f"{implementation.name} has no {PAGED_ATTENTION} factory; add one to audit it"
            )
        capabilities = effective_capabilities(implementation, PAGED_ATTENTION, build())
        return Subject(build, capabilities, device)


def _not_supported(check: Check, capabilities: frozenset[str]) -> Evidence:
    message = needed(check.contract, check.needs - capabilities)
    return Evidence(check, Verdict.NOT_SUPPORTED, message=message)


def _possible_cause(broken: str) -> str:
    """A note for what may be the consequence of a broken check that every case depends on."""
    return f"\nnote: {broken} was refuted before; this may be the same fault" if broken else ""


def _replayed(entry: AttentionCheck, subject: Subject, case: AttentionCase) -> Evidence:
    """Evidence of one case alone: what one case can't exercise isn't asked of it."""
    subject.counts, subject.largest_ratio = Counter(), 0.0
    failure = judge(entry, subject, case)
    check = replace(entry.check, exercised_by=())
    found = evidence_of(check, failure, +subject.counts, subject.largest_ratio)
    return replace(found, check=entry.check)


def _suits(entry: AttentionCheck, case: AttentionCase) -> bool:
    """Whether the check could have drawn this case."""
    used, scope = needed_capabilities(case), entry.scope
    return scope.focus <= used <= scope.focus | scope.extra and (case.placement > 0 or not scope.moves)


def _accepted(subject: Subject, dimensions: Dimensions) -> Dimensions:
    """The dimensions without what the implementation refuses; all of one kind where it refuses all of those.

    Refused may be dtypes, and the sizes of `SELDOM_TAKEN`.
    """
    case = AttentionCase(head_size=dimensions.head_sizes[0], block_size=dimensions.block_sizes[0])
    dtypes = tuple(dtype for dtype in dimensions.dtypes if _takes(subject, case, dtype)) or dimensions.dtypes
    taken = {}
    for name, field in (("block_sizes", "block_size"), ("head_sizes", "head_size")):
        sizes = getattr(dimensions, name)
        refused = {
            size
            for size in SELDOM_TAKEN[name]
            if size in sizes and not _takes(subject, structs.replace(case, **{field: size}), dtypes[0])
        }
        taken[name] = tuple(size for size in sizes if size not in refused) or sizes
    return replace(dimensions, dtypes=dtypes, **taken)


def _takes(subject: Subject, case: AttentionCase, dtype: str) -> bool:
    """Whether the implementation answers such a call, rightly or not, in this dtype."""
    call = subject.make(case)
    tensors = ("query", "key_cache", "value_cache")
    cast = {name: getattr(call, name).to(getattr(torch, dtype)) for name in tensors}
    try:
        subject.ask(call, **cast)
    except RuleBrokenError:
        return True
    except Exception:
        return False
    return True
