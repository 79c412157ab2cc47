"""From logits to the law of the next token: what each sampling parameter does.

Logits are float64, shape ``[vocabulary]``; minus infinity stands for a token of probability zero. Truncations
work on laws, over floats or fractions, so that their edge cases (ties, a sum that equals ``top_p``) can be
stated exactly. Truncating logits before softmax is the same thing: softmax keeps the order and renormalises.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from tokenlaw.spec.laws import Number, check_law, check_tokens, normalised

Logits = Float64[np.ndarray, " vocabulary"]


def check_logits(logits: Logits) -> None:
    """Refuse NaN, plus infinity, and logits that leave no token possible.

    >>> check_logits(np.array([0.0, np.nan]))
    Traceback (most recent call last):
    ValueError: token 1 has the logit nan; a logit is finite, or minus infinity if impossible
    >>> check_logits(np.array([-np.inf, -np.inf]))
    Traceback (most recent call last):
    ValueError: no token is left: every logit is minus infinity
    """
    for token, logit in enumerate(logits):
        if not logit < math.inf:
            raise ValueError(
                f"token {token} has the logit {logit}; a logit is finite, or minus infinity if impossible"
            )
    if np.all(logits == -math.inf):
        raise ValueError("no token is left: every logit is minus infinity")


def allow_only(logits: Logits, allowed: Collection[int]) -> Logits:
    """Make every token that isn't allowed impossible (grammar masks, allowed token ids).

    >>> allow_only(np.array([1.0, 2.0, 3.0]), {0, 2})
    array([  1., -inf,   3.])
    """
    check_tokens(allowed, len(logits))
    return np.where(np.isin(np.arange(len(logits)), list(allowed)), logits, -math.inf)


def add_bias(logits: Logits, bias: Mapping[int, float]) -> Logits:
    """Add to the logit of each token its bias; minus infinity bans a token.

    >>> add_bias(np.array([1.0, 2.0]), {1: -0.5})
    array([1. , 1.5])
    """
    check_tokens(bias, len(logits))
    return np.array([logit + bias.get(token, 0.0) for token, logit in enumerate(logits)])


def repetition_penalty(logits: Logits, penalty: float, seen: Collection[int]) -> Logits:
    """Divide the positive logits of seen tokens by the penalty, multiply their negative logits with it.

    ``seen`` are the tokens of prompt *and* output; how often one was seen doesn't matter. Source: Keskar et
    al. 2019 (CTRL), section 4.1, with the rule for negative logits that transformers and vLLM added.

    >>> repetition_penalty(np.array([2.0, -2.0, 1.0]), penalty=2.0, seen=[0, 1, 1])
    array([ 1., -4.,  1.])
    """
    check_tokens(seen, len(logits))
    penalised = np.where(logits > 0, logits / penalty, logits * penalty)
    return np.where(np.isin(np.arange(len(logits)), list(seen)), penalised, logits)


def presence_and_frequency_penalty(
    logits: Logits, presence: float, frequency: float, generated: Sequence[int]
) -> Logits:
    """Subtract ``presence`` once from each generated token, and ``frequency`` as often as it was generated.

    ``generated`` is the output so far, without the prompt. Source: OpenAI API reference; vLLM does the same.

    >>> presence_and_frequency_penalty(np.array([5.0, 5.0, 5.0]), 1.0, 0.5, generated=[1, 1, 2])
    array([5. , 3. , 3.5])
    """
    check_tokens(generated, len(logits))
    counts = np.bincount(np.array(generated, dtype=np.int64), minlength=len(logits))
    return np.asarray(logits - presence * (counts > 0) - frequency * counts)


def scale_by_temperature(logits: Logits, temperature: float) -> Logits:
    """Divide by the temperature. Temperature 0 is greedy: the token with the largest logit is certain.

    Of several largest logits the one with the lowest token id wins, as in ``torch.argmax`` on CPU and
    ``numpy.argmax``.

    >>> scale_by_temperature(np.array([1.0, 2.0, 2.0]), 0.5)
    array([2., 4., 4.])
    >>> scale_by_temperature(np.array([1.0, 2.0, 2.0]), 0.0)
    array([-inf,   0., -inf])
    """
    if temperature == 0:
        return np.where(np.arange(len(logits)) == np.argmax(logits), 0.0, -math.inf)
    return logits / temperature


def softmax(logits: Logits) -> tuple[float, ...]:
    """Law over tokens with probabilities proportional to ``exp(logit)``.

    >>> softmax(np.log([0.5, 0.25, 0.25]))
    (0.5, 0.25, 0.25)
    """
    check_logits(logits)
    weights = np.exp(logits - np.max(logits))
    return tuple((weights / np.sum(weights)).tolist())


def keep(law: Sequence[Number], kept: Collection[int]) -> tuple[Number, ...]:
    """The law given that the token is one of ``kept``: zero elsewhere, renormalised."""
    return normalised(
        [probability if token in kept else 0 * probability for token, probability in enumerate(law)]
    )


def top_k(law: Sequence[Number], k: int) -> tuple[Number, ...]:
    """Keep the tokens whose probability is at least the k-th largest one.

    With ties at the k-th largest probability more than k tokens stay: nothing distinguishes them. This is
    the rule of ``TopKLogitsWarper`` in transformers and of ``apply_top_k_top_p`` in vLLM. A ``k`` beyond the
    vocabulary keeps everything.

    >>> top_k([0.5, 0.125, 0.25, 0.125], k=1)
    (1.0, 0.0, 0.0, 0.0)
    >>> top_k([0.5, 0.125, 0.25, 0.125], k=3)  # two tokens share the third place
    (0.5, 0.125, 0.25, 0.125)
    """
    check_law(law, "law to truncate")
    if k < 1:
        raise ValueError(f"top_k must be at least 1, but is {k}; leave it out to keep every token")
    smallest = sorted(law, reverse=True)[min(k, len(law)) - 1]
    return keep(law, {token for token, probability in enumerate(law) if probability >= smallest})


def top_p(law: Sequence[Number], threshold: Number) -> tuple[Number, ...]:
    """Keep the fewest most probable tokens whose probabilities sum to the threshold or more.

    The token that crosses the threshold stays, and where the sum equals the threshold the next one goes
    (report: transformers #18976). Ties are broken by token id, lowest first; engines leave this open, because
    they sort without stability. Threshold 1 keeps everything, also where the float sum reaches 1 early.
    Source: Holtzman et al. 2020 (nucleus sampling).

    >>> from fractions import Fraction
    >>> law = [Fraction(3, 10), Fraction(1, 10), Fraction(1, 10), Fraction(5, 10)]
    >>> [str(probability) for probability in top_p(law, Fraction(8, 10))]
    ['3/8', '0', '0', '5/8']
    >>> [str(probability) for probability in top_p(law, Fraction(81, 100))]
    ['1/3', '1/9', '0', '5/9']
    """
    check_law(law, "law to truncate")
    if not 0 < threshold <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, but is {threshold}")
    if threshold == 1:
        return tuple(law)
    descending = sorted(
        range(len(law)), key=lambda token: law[token], reverse=True
    )  # stable: ties by token id
    kept: set[int] = set()
    mass = 0 * law[0]
    for token in descending:
        if mass < threshold:
            kept.add(token)
        mass = mass + law[token]
    return keep(law, kept)


def min_p(law: Sequence[Number], share: Number) -> tuple[Number, ...]:
    """Keep the tokens whose probability is at least ``share`` times the largest one.

    Source: Nguyen et al. 2024 (min-p sampling); ``MinPLogitsWarper`` in transformers has the same edge.

    >>> min_p([0.5, 0.25, 0.125, 0.125], share=0.5)[:2]
    (0.6666666666666666, 0.3333333333333333)
    """
    check_law(law, "law to truncate")
    if not 0 <= share <= 1:
        raise ValueError(f"min_p must be between 0 and 1, but is {share}")
    smallest = share * max(law)
    return keep(law, {token for token, probability in enumerate(law) if probability >= smallest})
