"""Target-only decoding: the law that every speed trick must keep.

The order in which `next_token_law` applies the sampling parameters: allowed tokens, logit bias, repetition
penalty, presence and frequency penalty, temperature, top-k, top-p, min-p. From temperature on it is the order
of transformers (``GenerationMixin._get_logits_processor``), up to temperature that of vLLM (documentation of
``vllm.v1.sample.sampler.Sampler``). After temperature vLLM applies min-p *before* top-k and top-p. That
matters for top-p only: after min-p the remaining probabilities are larger, their sum reaches top-p earlier,
and vLLM may keep fewer tokens. Such an engine is described by the same functions of
`tokenlaw.spec.processors`, called in its own order.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tokenlaw.spec.laws import Number, Tokens, check_count, check_law, collect, one_like
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.processors import (
    Logits,
    add_bias,
    allow_only,
    check_logits,
    min_p,
    presence_and_frequency_penalty,
    repetition_penalty,
    scale_by_temperature,
    softmax,
    top_k,
    top_p,
)


@dataclass(frozen=True)
class SamplingParameters:
    """What a request asks of the sampler; the defaults leave the model's law alone.

    Attributes
    ----------
    temperature : divides the logits; 0 is greedy decoding.
    top_k, top_p, min_p : truncations, see `tokenlaw.spec.processors`; None leaves one out.
    repetition_penalty : above 0; 1 does nothing. Sees prompt and output.
    presence_penalty, frequency_penalty : in logits; 0 does nothing. See the output only.
    logit_bias : token to what is added to its logit.
    allowed_tokens : the only possible tokens; None allows all.

    Raises
    ------
    ValueError
        The temperature or the repetition penalty is out of range; truncations are checked when applied.

    Examples
    --------
    >>> SamplingParameters(temperature=-1.0)
    Traceback (most recent call last):
    ValueError: the temperature must be finite and at least 0, but is -1.0
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed_tokens: frozenset[int] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"the temperature must be finite and at least 0, but is {self.temperature}")
        if not 0 < self.repetition_penalty < math.inf:
            raise ValueError(
                f"the repetition penalty must be finite and above 0, but is {self.repetition_penalty}"
            )


def process_logits(
    logits: Logits, parameters: SamplingParameters, prompt: Tokens = (), generated: Tokens = ()
) -> Logits:
    """Logits after mask, bias, penalties and temperature.

    Parameters
    ----------
    logits : float64 ``[vocabulary]``, finite, or minus infinity for an impossible token.
    prompt, generated : tokens of the request and tokens generated since. While a draft is verified, the
        drafts before its position count as generated.

    Examples
    --------
    >>> parameters = SamplingParameters(temperature=0.5, frequency_penalty=1.0)
    >>> process_logits(np.array([3.0, 3.0]), parameters, prompt=(0,), generated=(1,))
    array([6., 4.])
    """
    if parameters.allowed_tokens is not None:
        logits = allow_only(logits, parameters.allowed_tokens)
    logits = add_bias(logits, parameters.logit_bias)
    logits = repetition_penalty(logits, parameters.repetition_penalty, prompt + generated)
    logits = presence_and_frequency_penalty(
        logits, parameters.presence_penalty, parameters.frequency_penalty, generated
    )
    check_logits(logits)
    return scale_by_temperature(logits, parameters.temperature)


def next_token_law(
    logits: Logits, parameters: SamplingParameters, prompt: Tokens = (), generated: Tokens = ()
) -> tuple[float, ...]:
    """Law of the next token, from logits and everything that the request asks for.

    Arguments are those of `process_logits`.

    >>> next_token_law(np.array([1.0, 2.0, 2.0]), SamplingParameters(temperature=0.0))
    (0.0, 1.0, 0.0)
    >>> next_token_law(np.log([0.5, 0.25, 0.125, 0.125]), SamplingParameters(top_k=2, top_p=0.6))
    (1.0, 0.0, 0.0, 0.0)
    """
    law = softmax(process_logits(logits, parameters, prompt, generated))
    if parameters.top_k is not None:
        law = top_k(law, parameters.top_k)
    if parameters.top_p is not None:
        law = top_p(law, parameters.top_p)
    if parameters.min_p is not None:
        law = min_p(law, parameters.min_p)
    return law


@dataclass(frozen=True)
class ProcessedModel:
    """A language model seen through sampling parameters: a language model again.

    Attributes
    ----------
    model : the language model without sampling parameters; its logits are the logarithms of its law.
    parameters : what the request asks for.
    prompt_length : how many of the tokens are prompt; only the penalties look at it.

    Examples
    --------
    >>> model = ProcessedModel(lambda tokens: (0.5, 0.25, 0.25), SamplingParameters(top_k=1))
    >>> model(())
    (1.0, 0.0, 0.0)
    """

    model: LanguageModel[float]
    parameters: SamplingParameters
    prompt_length: int = 0

    def __call__(self, tokens: Tokens) -> tuple[float, ...]:
        """Law of the next token."""
        law = checked_law(self.model, tokens)
        logits = np.array([math.log(probability) if probability else -math.inf for probability in law])
        prompt, generated = tokens[: self.prompt_length], tokens[self.prompt_length :]
        return next_token_law(logits, self.parameters, prompt, generated)


def checked_law(model: LanguageModel[Number], tokens: Tokens) -> Sequence[Number]:
    """What the model says about the next token, refused if it isn't a law.

    >>> checked_law(lambda tokens: (0.5, 0.4), (2, 1))
    Traceback (most recent call last):
    ValueError: the probabilities of the model's law after (2, 1) sum to 0.9 instead of 1
    """
    law = model(tokens)
    check_law(law, f"model's law after {tokens}")
    return law


def target_only_law(model: LanguageModel[Number], prompt: Tokens, num_tokens: int) -> dict[Tokens, Number]:
    """Exact law of the next ``num_tokens`` tokens, by the chain rule.

    Returns
    -------
    Token sequence (without the prompt) to probability; impossible sequences are left out.

    Examples
    --------
    >>> from fractions import Fraction
    >>> coin = (Fraction(1, 3), Fraction(2, 3))
    >>> {tokens: str(p) for tokens, p in target_only_law(lambda tokens: coin, (), 2).items()}
    {(0, 0): '1/9', (0, 1): '2/9', (1, 0): '2/9', (1, 1): '4/9'}
    """
    check_count(num_tokens, "number of tokens")
    law: dict[Tokens, Number] = {(): one_like(checked_law(model, prompt)[0])}
    tokens: Tokens
    for _ in range(num_tokens):
        longer: list[tuple[Tokens, Number]] = []
        for tokens, weight in law.items():
            for token, probability in enumerate(checked_law(model, prompt + tokens)):
                longer.append(((*tokens, token), weight * probability))
        law = collect(longer)
    return law


def draw(law: Sequence[Number], uniform: float) -> int:
    """The token that a uniform number in [0, 1) picks: the first whose cumulative probability exceeds it.

    Token t is picked by the numbers in ``[P(token < t), P(token <= t))``, so an impossible token is never
    picked. Where rounding leaves the sum of floats below the number, the last possible token is picked.

    >>> [draw((0.25, 0.0, 0.75), uniform) for uniform in (0.0, 0.2, 0.25, 0.99)]
    [0, 0, 2, 2]
    """
    check_law(law, "law to draw from")
    if not 0 <= uniform < 1:
        raise ValueError(f"a uniform number lies in [0, 1), but got {uniform}")
    cumulative = 0 * law[0]
    for token, probability in enumerate(law):
        cumulative = cumulative + probability
        if uniform < cumulative:
            return token
    return max(token for token, probability in enumerate(law) if probability > 0)


def sample(
    model: LanguageModel[Number], prompt: Tokens, num_tokens: int, generator: np.random.Generator
) -> Tokens:
    """Target-only decoding: draw ``num_tokens`` tokens, one uniform number of the generator for each.

    >>> sample(lambda tokens: (0.5, 0.5), (), 8, np.random.default_rng(0))
    (1, 0, 0, 0, 1, 1, 1, 1)
    """
    check_count(num_tokens, "number of tokens")
    tokens: Tokens = ()
    for _ in range(num_tokens):
        tokens = (*tokens, draw(checked_law(model, prompt + tokens), generator.random()))
    return tokens
