"""What a decoding loop is asked for, and the law of what it must answer.

The law is that of target-only decoding: one token after the other, each drawn from what the model, the
sampling parameters and the grammar say about it, until a stop token or the asked number of tokens is there.
Drafts, caches, batches and other requests don't occur in it, because none of them may change it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tokenlaw.spec.laws import Tokens, check_count, collect
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.sampling import ProcessedModel, SamplingParameters


@dataclass(frozen=True)
class Grammar:
    """A finite automaton over the generated tokens; it begins in state 0.

    Attributes
    ----------
    transitions : for each state, which tokens are allowed there, and the state that each leads to.

    Raises
    ------
    ValueError
        There is no state, a transition leads to a state that doesn't exist, or a state allows nothing.

    Examples
    --------
    >>> zero_then_any = Grammar(({0: 1}, {0: 1, 1: 1}))
    >>> sorted(zero_then_any.allowed(())), sorted(zero_then_any.allowed((0, 1)))
    ([0], [0, 1])
    >>> zero_then_any.allowed((1,))
    Traceback (most recent call last):
    ValueError: the grammar doesn't allow token 1 after (); it allows [0]
    """

    transitions: tuple[Mapping[int, int], ...]

    def __post_init__(self) -> None:
        check_count(len(self.transitions), "number of states", least=1)
        for state, row in enumerate(self.transitions):
            if not row:
                raise ValueError(f"state {state} of the grammar allows no token")
            for token, following in row.items():
                if not 0 <= following < len(self.transitions):
                    raise ValueError(
                        f"token {token} leads {state} -> {following}: there is no state {following}"
                    )

    def allowed(self, generated: Tokens) -> frozenset[int]:
        """Tokens that may follow those that were generated."""
        state = 0
        for position, token in enumerate(generated):
            row = self.transitions[state]
            if token not in row:
                before = generated[:position]
                raise ValueError(
                    f"the grammar doesn't allow token {token} after {before}; it allows {sorted(row)}"
                )
            state = row[token]
        return frozenset(self.transitions[state])


@dataclass(frozen=True)
class DecodeRequest:
    """What somebody asks a decoder for.

    Attributes
    ----------
    prompt : one token or more.
    num_tokens : tokens to generate, at most; 1 or more.
    draft_length : drafts in each speculative step, at most; 0 for none. It must not change any law.
    samples : independent continuations of the prompt; 1 or more.
    sampling : temperature, truncations, penalties, bias; temperature 0 is greedy decoding.
    stop : a sample ends with the first of these tokens, which belongs to it.
    grammar : what is allowed at each position; None allows everything.

    Raises
    ------
    ValueError
        The prompt is empty, or a number is out of range.

    Examples
    --------
    >>> DecodeRequest(prompt=(), num_tokens=1)
    Traceback (most recent call last):
    ValueError: the length of the prompt must be at least 1, but is 0
    """

    prompt: Tokens
    num_tokens: int
    draft_length: int = 0
    samples: int = 1
    sampling: SamplingParameters = field(default_factory=SamplingParameters)
    stop: frozenset[int] = frozenset()
    grammar: Grammar | None = None

    def __post_init__(self) -> None:
        check_count(len(self.prompt), "length of the prompt", least=1)
        check_count(self.num_tokens, "number of tokens", least=1)
        check_count(self.draft_length, "draft length")
        check_count(self.samples, "number of samples", least=1)


def is_finished(request: DecodeRequest, generated: Tokens) -> bool:
    """Whether a sample ends here.

    >>> request = DecodeRequest(prompt=(0,), num_tokens=3, stop=frozenset({2}))
    >>> is_finished(request, (1, 1)), is_finished(request, (1, 2)), is_finished(request, (1, 1, 1))
    (False, True, True)
    """
    return len(generated) >= request.num_tokens or generated[-1:] in {(token,) for token in request.stop}


def law_of_next(model: LanguageModel[float], request: DecodeRequest, generated: Tokens) -> tuple[float, ...]:
    """Law of the next token of a sample, one probability for each token of the vocabulary.

    >>> request = DecodeRequest(prompt=(0,), num_tokens=2, grammar=Grammar(({1: 0, 2: 0},)))
    >>> law_of_next(lambda tokens: (0.5, 0.25, 0.25), request, ())
    (0.0, 0.5, 0.5)
    """
    sampling = request.sampling
    if request.grammar is not None:
        allowed = request.grammar.allowed(generated)
        if sampling.allowed_tokens is not None:
            allowed &= sampling.allowed_tokens
        sampling = replace(sampling, allowed_tokens=allowed)
    processed = ProcessedModel(model, sampling, len(request.prompt))
    return processed(request.prompt + generated)


def sample_law(
    model: LanguageModel[float], request: DecodeRequest, generated: Tokens = ()
) -> dict[Tokens, float]:
    """Exact law of all generated tokens of one sample, given those that are there already.

    Samples of one request, of forks and of other requests are independent.

    Returns
    -------
    Tokens generated, without the prompt, to probability; impossible outcomes are left out.

    Examples
    --------
    >>> request = DecodeRequest(prompt=(0,), num_tokens=2, stop=frozenset({1}))
    >>> sample_law(lambda tokens: (0.5, 0.5), request)
    {(1,): 0.5, (0, 0): 0.25, (0, 1): 0.25}
    """
    law: dict[Tokens, float] = {}
    unfinished = {generated: 1.0}
    while unfinished:
        longer: list[tuple[Tokens, float]] = []
        for tokens, weight in unfinished.items():
            if is_finished(request, tokens):
                law[tokens] = weight
                continue
            for token, probability in enumerate(law_of_next(model, request, tokens)):
                longer.append(((*tokens, token), weight * probability))
        unfinished = collect(longer)
    return law


def logprobs(model: LanguageModel[float], request: DecodeRequest, generated: Tokens) -> tuple[float, ...]:
    """Natural logarithm of the probability of each generated token, under the law that it is drawn from.

    >>> request = DecodeRequest(prompt=(0,), num_tokens=2)
    >>> logprobs(lambda tokens: (1.0, 0.0), request, (0, 1))
    (0.0, -inf)
    """
    laws = [law_of_next(model, request, generated[:position]) for position in range(len(generated))]
    return tuple(
        math.log(law[token]) if law[token] else -math.inf for law, token in zip(laws, generated, strict=True)
    )
