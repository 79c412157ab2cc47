"""Decoders that have models of their own: the laws of their targets, and cases that fit them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec

from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.decoders import target_of
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.sessions import Session, Submit
from tokenlaw.stats.decoder_cases import PAIR_PROMPT, Case
from tokenlaw.stats.decoder_programs import planned
from tokenlaw.stats.decoder_situations import MODELS, law_cases

FEW_SEQUENCES, MOST_SEQUENCES = 9, 256
"""Sequences that a sample may have in every run and in larger ones; requests are made shorter for that.
Models without zeros have many paths, and are slower than tables."""

MOST_OUTCOMES = 2**20
"""Of a law that is asked for. Two tokens of a real vocabulary have more."""


class OwnModels:
    """The targets of decoders that are built for 2 and for 3 tokens; they may have others than that.

    Parameters
    ----------
    make : builds the decoder.
    capabilities : that it has.
    """

    def __init__(self, make: Callable[[DecoderConfig], Any], capabilities: frozenset[str]) -> None:
        configs = {size: Session((), size).config for size in MODELS}
        laws = {size: cache(target_of(make(one), one, capabilities)) for size, one in configs.items()}
        self._sizes = {size: len(law(PAIR_PROMPT)) for size, law in laws.items()}
        self._laws = {self._sizes[size]: law for size, law in laws.items()}

    def cases(self, seed: int) -> list[Case]:
        """The cases of every run and of larger ones, with as many tokens as the decoder has."""
        cases = law_cases(seed, self._sizes)
        short = [_shortened(case, FEW_SEQUENCES) for case in cases]
        larger = [replace(_shortened(case, MOST_SEQUENCES), larger=1) for case in cases]
        known = {(case.check, case.title) for case in short}
        more = [case for case in larger if (case.check, case.title) not in known]
        return [case for case in short + more if _outcomes(case) <= MOST_OUTCOMES]

    def model(self, case: Case) -> LanguageModel[float]:
        """The target in a case."""
        return self._laws[case.session.vocabulary_size]


def _outcomes(case: Case) -> int:
    """What all random samples of a case can be, together."""
    parts = [part.request for part in planned(case) if not part.aborted and part.request.sampling.temperature]
    return int(case.session.vocabulary_size ** sum(one.samples * one.num_tokens for one in parts))


def _shortened(case: Case, sequences: int) -> Case:
    """The case with fewer tokens, where there would be more sequences."""
    size, most = case.session.vocabulary_size, 1
    while size ** (most + 1) <= sequences:
        most += 1
    submitted = [one.request for one in case.session.operations if isinstance(one, Submit)]
    if all(request.num_tokens <= most for request in submitted):
        return case
    operations = tuple(
        Submit(replace(one.request, num_tokens=min(one.request.num_tokens, most)), one.seed)
        if isinstance(one, Submit)
        else one
        for one in case.session.operations
    )
    title = f"{case.title}, cut to {most}"
    return replace(case, title=title, session=msgspec.structs.replace(case.session, operations=operations))
