"""transformers: sampling by ``generate`` with drafts, proved to have the law of sampling without them.

Every case is a program (call it) and its spec (`Case.target_only`). Prove one of them, or all:

    file=examples/audits/transformers_generate.py
    tokenlaw prove $file::llama_3_2_3 --spec $file::llama_3_2_3.target_only
    python $file
"""

import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import tokenlaw
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.processors import Logits
from tokenlaw.spec.sampling import SamplingParameters, next_token_law

# Models are made here; nothing is to be looked for elsewhere.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import transformers

Model = Any
"""A causal language model of transformers, which has no types."""

PROMPT = (1, 2, 0)
REPEATING = (1, 2, 0, 1, 2)
"""A prompt whose end occurred before, so that drafts are found in it."""
SPREAD = 0.8
"""Standard deviation of all weights. At 0.02, the default, attention and hence caches hardly matter."""
RATIO_CALLS = 300
"""Plain calls that the time of a path is compared with."""


@dataclass(frozen=True)
class Case:
    """One request to ``generate``.

    Attributes
    ----------
    target : samples the new tokens.
    assistant : drafts; None looks drafts up in the prompt.
    drafts : the most in one round; with the schedule ``heuristic`` in the first.
    new_tokens : how many to sample.
    prompt : tokens before them.
    parameters : temperature, truncations, penalties.
    end : a stop token.
    at_least : new tokens before which the stop token is impossible.
    threshold : the assistant stops after a draft that it finds less likely.
    schedule : of the number of drafts: ``constant`` or ``heuristic``.
    """

    target: Model
    assistant: Model | None = None
    drafts: int = 1
    new_tokens: int = 2
    prompt: Tokens = PROMPT
    parameters: SamplingParameters = SamplingParameters()
    end: int | None = None
    at_least: int = 0
    threshold: float = 0.0
    schedule: str = "constant"

    def __call__(self) -> Tokens:
        """Sample with drafts; the new tokens."""
        tokens = torch.tensor([self.prompt])
        found = self.target.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=True,
            max_new_tokens=self.new_tokens,
            **self._options,
            **self._drafting(),
        )
        return tuple(found[0, len(self.prompt) :].tolist())

    def target_only(self) -> Tokens:
        """Sample token after token, each from a pass over the whole text; the new tokens.

        Ends as ``generate`` must: at a stop token, which is emitted, or after `new_tokens`.
        """
        tokens: Tokens = ()
        while len(tokens) < self.new_tokens and self.end not in tokens:
            law = self.next_token(tokens)
            tokens = (*tokens, *random.choices(range(len(law)), law))
        return tokens

    def next_token(self, tokens: Tokens) -> tuple[float, ...]:
        """The target's law of the token after these new ones, in float64."""
        logits = next_logits(self.target, self.prompt + tokens)
        if self.end is not None and len(tokens) < self.at_least:
            logits = np.where(np.arange(len(logits)) == self.end, -np.inf, logits)
        return next_token_law(logits, self.parameters, self.prompt, tokens)

    @cached_property
    def _options(self) -> dict[str, Any]:
        """What ``generate`` calls the parameters; 0 is its way to leave top-k out."""
        parameters = self.parameters
        options = {
            "temperature": parameters.temperature,
            "top_k": parameters.top_k or 0,
            "top_p": parameters.top_p,
            "min_p": parameters.min_p,
            "repetition_penalty": parameters.repetition_penalty,
            "eos_token_id": self.end,
            "min_new_tokens": self.at_least or None,
        }
        return {name: value for name, value in options.items() if value is not None}

    def _drafting(self) -> dict[str, Any]:
        """Where drafts come from.

        ``generate`` leaves the last number of drafts of the schedule ``heuristic`` in the assistant, for the
        next call. A program must not keep state between calls, so every call begins anew.
        """
        if self.assistant is None:
            return {"prompt_lookup_num_tokens": self.drafts}
        settings = self.assistant.generation_config
        settings.num_assistant_tokens = self.drafts
        settings.num_assistant_tokens_schedule = self.schedule
        settings.assistant_confidence_threshold = self.threshold
        return {"assistant_model": self.assistant}


@cache
def next_logits(model: Model, tokens: Tokens) -> Logits:
    """Logits of the next token, from one pass without a cache."""
    with torch.no_grad():
        found: Logits = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].double().numpy()
    return found


@cache
def model(kind: str, vocabulary: int, seed: int) -> Model:
    """A tiny model with random weights: ``llama``, ``mistral`` (sees 3 tokens back) or ``gpt2`` (two layers)."""
    ends = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": 0}
    shared = {"vocab_size": vocabulary, "initializer_range": SPREAD, **ends}
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"num_key_value_heads": 1, "max_position_embeddings": 32}
    torch.manual_seed(seed)
    if kind == "gpt2":
        config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **shared)
        return transformers.GPT2LMHeadModel(config).eval()
    if kind == "mistral":
        return transformers.MistralForCausalLM(
            transformers.MistralConfig(**sizes, **shared, sliding_window=3)
        ).eval()
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **shared)).eval()


def pair(kind: str, vocabulary: int) -> dict[str, Model]:
    """A target, and an assistant with other weights."""
    return {"target": model(kind, vocabulary, 1), "assistant": model(kind, vocabulary, 2)}


def cases() -> Iterator[tuple[str, Case]]:
    """All cases with their names; of kind, vocabulary, drafts and new tokens where it is nothing else."""
    # The last token is never drafted, so that more drafts than that would be the same case again.
    sizes = [(drafts, new) for drafts, new in product((1, 2, 3), (2, 3, 4)) if drafts < new]
    for vocabulary, (drafts, new) in product((3, 4), sizes):
        yield f"llama_{vocabulary}_{drafts}_{new}", Case(**pair("llama", vocabulary), drafts=drafts, new_tokens=new)
    for vocabulary, drafts, new in ((3, 1, 2), (3, 2, 3), (3, 3, 4), (4, 2, 3)):
        yield f"gpt2_{vocabulary}_{drafts}_{new}", Case(**pair("gpt2", vocabulary), drafts=drafts, new_tokens=new)
    for drafts, new in ((1, 3), (3, 4)):
        yield f"mistral_3_{drafts}_{new}", Case(**pair("mistral", 3), drafts=drafts, new_tokens=new)
    for kind in ("llama", "gpt2"):
        for name, options in VARIATIONS.items():
            yield f"{kind}_{name}", Case(**pair(kind, 3), **options)
        for name, options in LOOKUPS.items():
            yield f"{kind}_lookup{name}", Case(model(kind, 3, 1), **options)


VARIATIONS: dict[str, dict[str, Any]] = {
    "temperature": {"drafts": 2, "new_tokens": 3, "parameters": SamplingParameters(temperature=0.5)},
    "top_k": {"drafts": 2, "new_tokens": 3, "parameters": SamplingParameters(temperature=1.5, top_k=2)},
    "top_p": {"drafts": 2, "new_tokens": 3, "parameters": SamplingParameters(top_p=0.8)},
    "min_p": {"drafts": 2, "new_tokens": 3, "parameters": SamplingParameters(min_p=0.4)},
    "penalty": {"drafts": 2, "new_tokens": 3, "parameters": SamplingParameters(repetition_penalty=1.5)},
    "stop": {"drafts": 3, "new_tokens": 4, "end": 2},
    "stop_later": {"drafts": 3, "new_tokens": 4, "end": 2, "at_least": 2},
    "threshold": {"drafts": 3, "new_tokens": 4, "threshold": 0.4},
    "heuristic": {"drafts": 1, "new_tokens": 4, "schedule": "heuristic"},
    "heuristic_stop": {"drafts": 1, "new_tokens": 4, "schedule": "heuristic", "threshold": 0.4, "end": 2},
}
"""Cases with an assistant, by what is special about them."""

LOOKUPS: dict[str, dict[str, Any]] = {
    "_1": {"prompt": REPEATING, "drafts": 1, "new_tokens": 3},
    "_2": {"prompt": REPEATING, "drafts": 2, "new_tokens": 4},
    "_top_k": {
        "prompt": REPEATING,
        "drafts": 2,
        "new_tokens": 4,
        "parameters": SamplingParameters(temperature=0.5, top_k=2),
    },
    "_stop": {"prompt": (1, 0, 0, 2, 1), "drafts": 3, "new_tokens": 4, "end": 2},
}
"""Cases with drafts that are looked up in the prompt."""

CASES = dict(cases())

# The command line finds a case by its name in this module.
globals().update(CASES)


def proof(case: Case, name: str) -> tuple[str, ...]:
    """A row of the table: verdict, paths, outcomes, seconds, bound, and the time against plain calls."""
    report = tokenlaw.prove(case, spec=case.target_only, raises=False)
    [found] = report.evidence
    if not found.statistics or "tv_at_most" not in found.statistics:
        return name, str(found.verdict), found.message
    return (
        name,
        str(found.verdict),
        f"{found.statistics['paths']:,}",
        f"{found.seconds:.1f}",
        f"{found.statistics['tv_at_most']:.1e}",
    )


def main(names: list[str]) -> None:
    """Prove the cases with these names, or all."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    for name in names or CASES:
        started = time.process_time()
        print(*proof(CASES[name], name), f"cpu {time.process_time()-started:.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
