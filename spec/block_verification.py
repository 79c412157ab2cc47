"""Block verification: decide about a whole block of drafts jointly.

Exact, with another joint law than the chain rule: it accepts at least as many drafts on average. Source: Sun
et al. 2024, *Block Verification Accelerates Speculative Decoding* (arXiv 2403.10444), algorithm 2, where
equation 4 is the law of the added token and equation 5 the acceptance probability.
"""

from collections.abc import Sequence

from tokenlaw.spec.laws import Number, Tokens, collect, one_like, total
from tokenlaw.spec.speculation import (
    StepOutcome,
    check_step,
    excess,
    normalised_excess,
    then_one_token,
)


def block_verification(
    drafts: Tokens, *, target: Sequence[Sequence[Number]], draft: Sequence[Sequence[Number]]
) -> dict[StepOutcome, Number]:
    """Accept the longest prefix of the drafts that passes its own test, then add one token.

    Every prefix length i = 1 .. K is tested with its own random number, also after a failed test, and passes
    with probability h_i (`prefix_acceptance`). With tau the largest i that passes, or 0 if none does, the
    added token has the law ``(p_tau * target - draft)+``, normalised, at position tau + 1; after all K
    drafts, the target law.

    Arguments and result are those of `tokenlaw.spec.speculation.VerificationRule`.

    Examples
    --------
    The paper's motivating example: token by token 10/9 drafts are accepted on average, jointly 11/9.

    >>> from fractions import Fraction
    >>> from tokenlaw.spec.sampling import target_only_law
    >>> from tokenlaw.spec.steps import completed_law, mean_accepted, step_law
    >>> def target(tokens): return Fraction(1, 3), Fraction(2, 3)
    >>> def draft(tokens): return Fraction(2, 3), Fraction(1, 3)
    >>> step = step_law(block_verification, target=target, draft=draft, prompt=(), draft_length=2)
    >>> mean_accepted(step)
    Fraction(11, 9)
    >>> completed_law(step, target=target, prompt=(), num_tokens=3) == target_only_law(target, (), 3)
    True
    """
    check_step(drafts, target=target, draft=draft)
    factors = prefix_factors(drafts, target=target, draft=draft)
    law: list[tuple[StepOutcome, Number]] = []
    longer_fail = one_like(target[0][0])  # probability that every longer prefix fails its test
    for length in range(len(drafts), -1, -1):
        passes = prefix_acceptance(length, factors, target=target, draft=draft)
        added = added_token_law(length, factors, target=target, draft=draft)
        law += then_one_token(drafts[:length], added, longer_fail * passes)
        longer_fail = longer_fail * (1 - passes)
    return collect(law)


def prefix_factors(
    drafts: Tokens, *, target: Sequence[Sequence[Number]], draft: Sequence[Sequence[Number]]
) -> list[Number]:
    """The factors p_0 = 1 and ``p_i = min(1, p_(i-1) * target(x_i) / draft(x_i))``; K + 1 numbers.

    p_i is the probability that at least i drafts are accepted, given the first i drafts.

    >>> prefix_factors((0, 1), target=[(0.75, 0.25)] * 3, draft=[(0.5, 0.5)] * 2)
    [1.0, 1.0, 0.5]
    """
    one = one_like(target[0][0])
    factors = [one]
    for position, token in enumerate(drafts):
        if draft[position][token] == 0:
            raise ValueError(f"draft {position} is token {token}, which its draft law never gives")
        factor = factors[-1] * target[position][token] / draft[position][token]
        factors.append(factor if factor < 1 else one)
    return factors


def prefix_acceptance(
    length: int,
    factors: Sequence[Number],
    *,
    target: Sequence[Sequence[Number]],
    draft: Sequence[Sequence[Number]],
) -> Number:
    """Probability h_i with which the prefix of ``length`` = i drafts passes its test.

    ``h_i = m / (m + 1 - p_i)``, where m is the sum of ``(p_i * target - draft)+`` at position i + 1;
    h_K = p_K; h_0 = 1. For p_i = 1 and m = 0 the quotient is 0 / 0, and any number will do: a longer prefix
    is then accepted for certain.

    >>> prefix_acceptance(1, [1.0, 0.5, 0.5], target=[(0.5, 0.5)] * 3, draft=[(0.0, 1.0)] * 2)
    0.3333333333333333
    """
    factor = factors[length]
    if length == 0 or length == len(draft):
        return factor
    mass = total(excess([factor * wanted for wanted in target[length]], draft[length]))
    return mass / (mass + 1 - factor) if mass > 0 else mass


def added_token_law(
    length: int,
    factors: Sequence[Number],
    *,
    target: Sequence[Sequence[Number]],
    draft: Sequence[Sequence[Number]],
) -> Sequence[Number]:
    """Law of the token that is added to ``length`` accepted drafts.

    >>> added_token_law(1, [1.0, 0.5, 0.5], target=[(0.5, 0.5)] * 3, draft=[(0.0, 1.0)] * 2)
    (1.0, 0.0)
    """
    if length == len(draft):
        return target[length]
    scaled = [factors[length] * wanted for wanted in target[length]]
    return normalised_excess(scaled, target=target[length], draft=draft[length])
