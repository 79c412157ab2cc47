"""One whole speculative step by exact enumeration, and what exactness means for it."""

from tokenlaw.spec.laws import Number, Tokens, check_count, collect, total
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.sampling import target_only_law
from tokenlaw.spec.speculation import StepOutcome, VerificationRule


def step_law(
    rule: VerificationRule[Number],
    *,
    target: LanguageModel[Number],
    draft: LanguageModel[Number],
    prompt: Tokens,
    draft_length: int,
) -> dict[StepOutcome, Number]:
    """Joint law of the accepted length and the emitted tokens of one step.

    By definition: the draft model samples ``draft_length`` tokens, the target model gives a law for each of
    their positions and for the one behind them, the rule decides.

    >>> from fractions import Fraction
    >>> from tokenlaw.spec.speculation import chain_verification
    >>> def target(tokens): return Fraction(3, 4), Fraction(1, 4)
    >>> def draft(tokens): return Fraction(1, 4), Fraction(3, 4)
    >>> law = step_law(chain_verification, target=target, draft=draft, prompt=(), draft_length=1)
    >>> for outcome, probability in sorted(law.items()):
    ...     print(outcome, probability)
    StepOutcome(accepted=0, tokens=(0,)) 1/2
    StepOutcome(accepted=1, tokens=(0, 0)) 3/16
    StepOutcome(accepted=1, tokens=(0, 1)) 1/16
    StepOutcome(accepted=1, tokens=(1, 0)) 3/16
    StepOutcome(accepted=1, tokens=(1, 1)) 1/16
    """
    check_count(draft_length, "draft length")
    law: list[tuple[StepOutcome, Number]] = []
    for drafts, weight in target_only_law(draft, prompt, draft_length).items():
        prefixes = [prompt + drafts[:position] for position in range(draft_length + 1)]
        verified = rule(
            drafts,
            target=[target(prefix) for prefix in prefixes],
            draft=[draft(prefix) for prefix in prefixes[:-1]],
        )
        law += [(outcome, weight * probability) for outcome, probability in verified.items()]
    return collect(law)


def completed_law(
    step: dict[StepOutcome, Number], *, target: LanguageModel[Number], prompt: Tokens, num_tokens: int
) -> dict[Tokens, Number]:
    """Law of ``num_tokens`` tokens: the output of the step, extended by target-only sampling.

    A step that drafts K tokens is exact if, and only if, its completed law of K + 1 tokens is the target-only
    law of K + 1 tokens.

    Raises
    ------
    ValueError
        The step emits more than ``num_tokens`` tokens.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tokenlaw.spec.speculation import chain_verification
    >>> def target(tokens): return Fraction(3, 4), Fraction(1, 4)
    >>> def draft(tokens): return Fraction(1, 4), Fraction(3, 4)
    >>> step = step_law(chain_verification, target=target, draft=draft, prompt=(), draft_length=1)
    >>> completed_law(step, target=target, prompt=(), num_tokens=2) == target_only_law(target, (), 2)
    True
    """
    longest = max(len(outcome.tokens) for outcome in step)
    if longest > num_tokens:
        raise ValueError(f"the step emits up to {longest} tokens, more than the {num_tokens} to complete to")
    law: list[tuple[Tokens, Number]] = []
    for outcome, weight in step.items():
        emitted = outcome.tokens
        rests = target_only_law(target, prompt + emitted, num_tokens - len(emitted))
        law += [(emitted + rest, weight * probability) for rest, probability in rests.items()]
    return collect(law)


def accepted_length_law(step: dict[StepOutcome, Number]) -> dict[int, Number]:
    """Law of the number of accepted drafts.

    >>> step = {StepOutcome(1, (0, 0)): 0.5, StepOutcome(1, (0, 1)): 0.25, StepOutcome(0, (1,)): 0.25}
    >>> accepted_length_law(step)
    {1: 0.75, 0: 0.25}
    """
    return collect((outcome.accepted, probability) for outcome, probability in step.items())


def mean_accepted(step: dict[StepOutcome, Number]) -> Number:
    """Expected number of accepted drafts.

    >>> mean_accepted({StepOutcome(0, (1,)): 0.5, StepOutcome(2, (0, 0, 0)): 0.5})
    1.0
    """
    return total([probability * outcome.accepted for outcome, probability in step.items()])


def mean_emitted(step: dict[StepOutcome, Number]) -> Number:
    """Expected number of emitted tokens.

    For a constant acceptance rate it has the closed form `expected_tokens`; the
    form with ``1 - a**K`` would give 15/8 here:

    >>> from fractions import Fraction
    >>> from tokenlaw.spec.speculation import chain_verification
    >>> half = Fraction(1, 2)
    >>> def target(tokens): return half, half
    >>> def draft(tokens): return Fraction(1), Fraction(0)
    >>> step = step_law(chain_verification, target=target, draft=draft, prompt=(), draft_length=4)
    >>> mean_emitted(step), expected_tokens(half, 4)
    (Fraction(31, 16), Fraction(31, 16))
    """
    return total([probability * len(outcome.tokens) for outcome, probability in step.items()])


def expected_tokens(acceptance_rate: Number, draft_length: int) -> Number:
    """Expected number of tokens of one step when each draft is accepted with the same probability.

    ``(1 - a**(K + 1)) / (1 - a)``, Leviathan et al. 2023, equation 1, and K + 1 for a = 1. The widespread
    form with ``1 - a**K`` leaves out the token that the target adds to every step.

    >>> expected_tokens(0.5, 4), expected_tokens(1.0, 4)
    (1.9375, 5.0)
    """
    check_count(draft_length, "draft length")
    if not 0 <= acceptance_rate <= 1:
        raise ValueError(f"an acceptance rate lies in 0..1, but got {acceptance_rate}")
    if acceptance_rate == 1:
        return acceptance_rate * (draft_length + 1)
    return (1 - acceptance_rate ** (draft_length + 1)) / (1 - acceptance_rate)
