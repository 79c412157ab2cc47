"""The check ``law/proved``: what the proof of a verifier says, as a row of the report."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenlaw.spec.announcing import announce
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import PROVED as BY_PROOF
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.places import Place
from tokenlaw.stats.proving import ROUNDING, CaseProof, Prover, prove_cases
from tokenlaw.stats.proving_cases import Case, chain_cases, tree_cases
from tokenlaw.stats.proving_words import refutation, shown_proof
from tokenlaw.stats.verifier_checks import BY_ID, PROVED

ROWS_A_PATH = 600
"""A run may enumerate one path for so many rows that it may sample."""

FEWEST_PATHS, MOST_PATHS = 150, 50_000

ENOUGH_FOR_LARGER = 5_000
"""With so many paths larger cases are tried as well."""

SECONDS_A_PATH = 1 / 60
"""A verifier that is slower than that is left after as much time as this takes for all paths."""


@dataclass(frozen=True)
class ProofRequest:
    """What is asked of a verifier.

    Attributes
    ----------
    make : builds the verifier.
    claims : what it is held to.
    own_drafter, trees : its capabilities.
    refused, most_rows : what it doesn't take, see `tokenlaw.spec.generation_contracts.Verifier`.
    seed, settings : of the run.
    """

    make: Callable[[], Any]
    claims: str
    own_drafter: bool
    trees: bool
    refused: frozenset[str]
    most_rows: int | None
    seed: int
    settings: Settings

    @property
    def tolerance(self) -> float:
        """Total variation up to which a law may differ: what was allowed, at least what float32 needs."""
        return max(ROUNDING, self.settings.tolerance)

    def cases(self, *, larger: bool) -> list[Case]:
        """All cases, the most telling first."""
        chains = chain_cases(self.seed, own_drafter=self.own_drafter, refused=self.refused, larger=larger)
        trees = tree_cases(self.seed, larger=larger) if self.trees else []
        whole = [case for case in chains + trees if self.most_rows is None or _rows(case) <= self.most_rows]
        return sorted(whole, key=lambda case: case.larger)

    def place(self, case: Case, paths: int) -> Place:
        """Where a case can be run again."""
        return Place.under(self.settings, case.name, paths, self.seed, self.claims, check=PROVED)


def _rows(case: Case) -> int:
    return max((len(kinds) for kinds in case.group), default=1)


def paths_of(budget: int) -> int:
    """How many paths are run for a budget of so many rows, at most; none if they would be too few.

    >>> paths_of(600_000), paths_of(200_000_000), paths_of(10_000)
    (1000, 50000, 0)
    """
    paths = min(budget // ROWS_A_PATH, MOST_PATHS)
    return paths if paths >= FEWEST_PATHS else 0


def proof(request: ProofRequest, paths: int, alive: Callable[[], None]) -> Evidence:
    """Prove as many cases as so many paths allow."""
    return _evidence(request, request.cases(larger=paths >= ENOUGH_FOR_LARGER), paths, alive)


def proof_again(request: ProofRequest, name: str, paths: int, alive: Callable[[], None]) -> Evidence | None:
    """Prove the case of a counterexample; None if there is no such case."""
    cases = [case for case in request.cases(larger=True) if case.name == name]
    return _evidence(request, cases, paths, alive) if cases else None


def _evidence(
    request: ProofRequest, cases: Sequence[Case], paths: int, alive: Callable[[], None]
) -> Evidence:
    started = time.perf_counter()
    prover = Prover(
        request.make,
        claims=request.claims,
        seed=request.seed,
        device=request.settings.device,
        tolerance=request.tolerance,
        rows=request.most_rows,
        alive=alive,
    )

    def enter(case: Case) -> None:
        alive()
        announce(request.place(case, paths).to_data())

    proofs = prove_cases(prover, cases, max_paths=paths, seconds=paths * SECONDS_A_PATH, enter=enter)
    refuted = [one for one in proofs if one.refuted(request.tolerance)]
    proved = [one for one in proofs if one.proved(request.tolerance)]
    run, seconds = sum(one.paths for one in proofs), time.perf_counter() - started
    place = None
    if refuted:
        worst = max(refuted, key=lambda proof: proof.least)
        verdict, message = Verdict.REFUTED, "\n".join([refutation(worst), *_others(refuted, worst)])
        place = request.place(worst.case, paths).to_data()
    elif proved:
        verdict, message = Verdict.HOLDS, _certificate(proved, proofs, len(cases) - len(proved), seconds)
    else:
        return Evidence(
            BY_ID[PROVED], Verdict.NOT_SUPPORTED, {}, prover.verified, seconds, _why_not(proofs, cases, paths)
        )
    exercised = {"paths": run, "cases": len(proved) + len(refuted)}
    statistics = {**_statistics(refuted or proved, run), "paths_a_second": run / seconds}
    if refuted:
        statistics["laws_shown"] = [shown_proof(worst)]
    return Evidence(BY_ID[PROVED], verdict, exercised, prover.verified, seconds, message, place, statistics)


def _statistics(proofs: Sequence[CaseProof], paths: int) -> Mapping[str, Any]:
    least = max(one.least for one in proofs)
    most = max(comparison.most for one in proofs for comparison in one.comparisons)
    laws = sum(len(one.comparisons) for one in proofs)
    return {"evidence": BY_PROOF, "paths": paths, "laws": laws, "tv_at_least": least, "tv_at_most": most}


def _others(refuted: Sequence[CaseProof], worst: CaseProof) -> list[str]:
    names = [f"{one.case.title} (TV {one.least:.2g})" for one in refuted if one is not worst]
    return [f"Refuted as well: {', '.join(names)}."] if names else []


def _certificate(proved: Sequence[CaseProof], proofs: Sequence[CaseProof], left: int, seconds: float) -> str:
    most = max(comparison.most for one in proved for comparison in one.comparisons)
    laws, run = sum(len(one.comparisons) for one in proved), sum(one.paths for one in proofs)
    text = (
        f"Proved by running every path of its random numbers: {laws} laws of {len(proved)} small situations "
        f"are within TV {most:.1e} of the exact ones, {run} paths in {seconds:.1f} s, "
        f"{run / seconds:,.0f} paths/s."
    )
    reasons = [f"{one.case.title}: {one.reason}" for one in proofs if one.reason]
    if not left:
        return text
    return (
        f"{text} {left} more couldn't be: {reasons[0]}" if reasons else f"{text} Not finished: {left} more."
    )


_INSTEAD = "an audit samples its laws instead"


def _why_not(proofs: Sequence[CaseProof], cases: Sequence[Case], paths: int) -> str:
    """Why nothing is proved, in one sentence."""
    reasons = [one.reason for one in proofs if one.reason]
    if reasons:
        return f"its random numbers can't be decided: {reasons[0].rstrip('.')}; {_INSTEAD}"
    if not paths:
        fewest = FEWEST_PATHS * ROWS_A_PATH
        return (
            f"a proof needs a budget of {fewest:,} rows (--budget), or {FEWEST_PATHS} paths "
            "(tokenlaw prove --max-paths); without one its laws are only sampled"
        )
    if not cases:
        return f"it refuses the rows of all small situations; {_INSTEAD}"
    return f"no small situation could be finished within the budget; {_INSTEAD}"
