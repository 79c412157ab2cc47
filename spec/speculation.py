"""The rules of speculative sampling, line by line.

A draft model proposes tokens, the target model verifies them, and the result has the target's law. Sources:
Leviathan, Kalman and Matias 2023, *Fast Inference from Transformers via Speculative Decoding* (algorithm 1);
Chen et al. 2023, *Accelerating Large Language Model Decoding with Speculative Sampling* (algorithm 2). The
papers swap the letters (Leviathan: p target, q draft; Chen: q target, p draft), so here the laws are always
called ``target`` and ``draft``, and always passed by name.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tokenlaw.spec.laws import (
    FLOAT_TOLERANCE,
    Number,
    Tokens,
    check_law,
    check_same_vocabulary,
    check_tokens,
    collect,
    normalised,
    one_like,
    positive_part,
    total,
)


class StepOutcome(NamedTuple):
    """What one speculative step does.

    Attributes
    ----------
    accepted : how many draft tokens are accepted, 0 .. K.
    tokens : the tokens that are emitted; in every exact rule here the accepted ones and one more.
    """

    accepted: int
    tokens: Tokens


class VerificationRule(Protocol[Number]):
    """How a step decides: the law of its outcome, given the drafts and the laws at their positions.

    ``drafts`` are K tokens; ``target`` are K + 1 laws, the last of which follows all drafts; ``draft`` are
    the K laws that the drafts were drawn from.
    """

    def __call__(
        self, drafts: Tokens, *, target: Sequence[Sequence[Number]], draft: Sequence[Sequence[Number]]
    ) -> dict[StepOutcome, Number]:
        """Law of the outcome."""
        ...


def acceptance_probability(*, draft: Number, target: Number) -> Number:
    """Probability ``min(1, target / draft)`` with which a drafted token is accepted.

    Leviathan et al. 2023, section 2.3.

    Parameters
    ----------
    draft, target : probability of that token in the draft law and in the target law.

    Raises
    ------
    ValueError
        The draft probability is zero (such a token is never drafted), or one isn't a probability.

    Examples
    --------
    >>> from fractions import Fraction
    >>> acceptance_probability(draft=0.5, target=0.8)
    1.0
    >>> acceptance_probability(draft=0.8, target=0.9), acceptance_probability(draft=0.7, target=0.8)
    (1.0, 1.0)
    >>> acceptance_probability(draft=Fraction(6, 10), target=Fraction(2, 10))
    Fraction(1, 3)
    >>> acceptance_probability(draft=0.5, target=0.1)
    0.2
    """
    if not (0 < draft <= 1 + FLOAT_TOLERANCE and 0 <= target <= 1 + FLOAT_TOLERANCE):
        raise ValueError(
            f"needs probabilities, and above 0 for the draft's, but got draft {draft}, target {target}"
        )
    return target / draft if target < draft else one_like(draft)


def residual(*, target: Sequence[Number], draft: Sequence[Number]) -> tuple[Number, ...]:
    """Law of the token that replaces a rejected one: ``(target - draft)+``, normalised.

    Leviathan et al. 2023, section 2.3. If ``(target - draft)+`` is zero everywhere, the laws are equal and
    nothing is ever rejected; then the target law is returned, because floats may reject by rounding.

    >>> from fractions import Fraction
    >>> target, draft = [Fraction(7, 10), Fraction(3, 10)], [Fraction(1, 2), Fraction(1, 2)]
    >>> residual(target=target, draft=draft)
    (Fraction(1, 1), Fraction(0, 1))
    """
    check_pair(target=target, draft=draft)
    return normalised_excess(target, target=target, draft=draft)


def normalised_excess(
    scaled: Sequence[Number], *, target: Sequence[Number], draft: Sequence[Number]
) -> tuple[Number, ...]:
    """``(scaled - draft)+``, normalised; the target law where that is zero everywhere.

    ``scaled`` is the target law times a factor: 1 token by token, less in block verification.

    >>> normalised_excess([0.25, 0.25], target=[0.5, 0.5], draft=[0.0, 1.0])
    (1.0, 0.0)
    """
    weights = excess(scaled, draft)
    return normalised(weights) if any(weights) else tuple(target)


def excess(scaled: Sequence[Number], draft: Sequence[Number]) -> list[Number]:
    """``(scaled - draft)+`` for each token.

    >>> excess([0.75, 0.25], [0.5, 0.5])
    [0.25, 0.0]
    """
    return [positive_part(mine - other) for mine, other in zip(scaled, draft, strict=True)]


def emitted_law(*, target: Sequence[Number], draft: Sequence[Number]) -> tuple[Number, ...]:
    """Law of the token that one position emits: draft a token, accept it or replace it.

    The theorem (Leviathan et al. 2023, appendix A.1) says that this is the target law.

    >>> from fractions import Fraction
    >>> target, draft = [Fraction(7, 10), Fraction(3, 10)], [Fraction(1, 2), Fraction(1, 2)]
    >>> emitted_law(target=target, draft=draft)
    (Fraction(7, 10), Fraction(3, 10))

    Tokens A and B, A drafted too often: what is rejected of A becomes B.

    >>> emitted_law(target=[Fraction(1, 5), Fraction(4, 5)], draft=[Fraction(3, 5), Fraction(2, 5)])
    (Fraction(1, 5), Fraction(4, 5))
    """
    check_pair(target=target, draft=draft)
    accepted = [
        drafted * acceptance_probability(draft=drafted, target=wanted) if drafted > 0 else drafted
        for drafted, wanted in zip(draft, target, strict=True)
    ]
    rejection = total(draft) - total(accepted)
    replacement = residual(target=target, draft=draft)
    return tuple(taken + rejection * replaced for taken, replaced in zip(accepted, replacement, strict=True))


def chain_verification(
    drafts: Tokens, *, target: Sequence[Sequence[Number]], draft: Sequence[Sequence[Number]]
) -> dict[StepOutcome, Number]:
    """The textbook rule: accept drafts one by one up to the first rejection, then add one token.

    After a rejection the added token has the residual law of that position. After K acceptances it is the
    *bonus* token, with the target law that follows all drafts. Leviathan et al. 2023, algorithm 1.

    >>> law = chain_verification((1,), target=[(0.75, 0.25), (0.5, 0.5)], draft=[(0.5, 0.5)])
    >>> for outcome, probability in law.items():
    ...     print(outcome, probability)
    StepOutcome(accepted=0, tokens=(0,)) 0.5
    StepOutcome(accepted=1, tokens=(1, 0)) 0.25
    StepOutcome(accepted=1, tokens=(1, 1)) 0.25
    """
    check_step(drafts, target=target, draft=draft)
    law: list[tuple[StepOutcome, Number]] = []
    reached = one_like(target[0][0])  # probability that all drafts before the position are accepted
    for position, token in enumerate(drafts):
        acceptance = acceptance_probability(draft=draft[position][token], target=target[position][token])
        replacement = residual(target=target[position], draft=draft[position])
        law += then_one_token(drafts[:position], replacement, reached * (1 - acceptance))
        reached = reached * acceptance
    law += then_one_token(drafts, target[-1], reached)
    return collect(law)


def deterministic_verification(
    drafts: Tokens, *, target: Sequence[Sequence[Number]], draft: Sequence[Sequence[Number]]
) -> dict[StepOutcome, Number]:
    """The rule for drafts without probabilities (n-gram lookup, greedy drafts): their laws count as one-hot.

    A draft is accepted with its target probability, and its replacement has the target law without it. Exact
    for all drafts that don't look at the verifier's random numbers, sampled ones too, only fewer of those are
    accepted (reports: vLLM #40149, SGLang #10308). The law is also that of *sample and match*: draw from the
    target, accept the draft if it is equal, emit what was drawn.

    >>> law = deterministic_verification((1,), target=[(0.75, 0.25), (0.5, 0.5)], draft=[(0.5, 0.5)])
    >>> sum(probability for outcome, probability in law.items() if outcome.accepted == 1)
    0.25
    """
    check_step(drafts, target=target, draft=draft)
    certain = [
        [one_like(row[0]) if other == token else 0 * row[other] for other in range(len(row))]
        for token, row in zip(drafts, draft, strict=True)
    ]
    return chain_verification(drafts, target=target, draft=certain)


def then_one_token(
    accepted: Tokens, law: Sequence[Number], weight: Number
) -> list[tuple[StepOutcome, Number]]:
    """Outcomes that emit the accepted drafts and one token of the given law, times the weight.

    >>> then_one_token((4,), [0.5, 0.5], 0.5)[0]
    (StepOutcome(accepted=1, tokens=(4, 0)), 0.25)
    """
    return [
        (StepOutcome(len(accepted), (*accepted, token)), weight * probability)
        for token, probability in enumerate(law)
    ]


def check_pair(*, target: Sequence[Number], draft: Sequence[Number]) -> None:
    """Refuse a target law and a draft law that aren't laws over one vocabulary."""
    check_law(target, "target law")
    check_law(draft, "draft law")
    check_same_vocabulary(target, draft)


def check_step(
    drafts: Tokens, *, target: Sequence[Sequence[Number]], draft: Sequence[Sequence[Number]]
) -> None:
    """Refuse what no step can be given: see the messages."""
    if len(draft) != len(drafts) or len(target) != len(drafts) + 1:
        raise ValueError(
            f"{len(drafts)} drafts need {len(drafts)} draft laws and {len(drafts) + 1} target laws, "
            f"but got {len(draft)} and {len(target)}"
        )
    for law in target:
        check_law(law, "target law")
    for law in draft:
        check_law(law, "draft law")
    check_same_vocabulary(*target, *draft)
    check_tokens(drafts, len(target[0]))
