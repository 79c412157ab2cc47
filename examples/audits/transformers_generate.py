"""transformers: ``generate`` with drafts, proved to have the law of sampling token after token.

Every case is a program (call it) and its spec (`Case.target_only`). Prove one of them, or all:

    file=examples/audits/transformers_generate.py
    tokenlaw prove $file::llama_3_2_3 --spec $file::llama_3_2_3.target_only
    python $file
"""

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import torch

import tokenlaw
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.processors import Logits
from tokenlaw.spec.sampling import SamplingParameters, next_token_law
from tokenlaw.spec.verdicts import Verdict

# Models are made here; nothing is to be looked for elsewhere.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers: Any = import_module("transformers")
transformers.logging.set_verbosity_error()

Model = Any
"""A causal language model of transformers."""

PROMPT = (1, 2, 0)
SPREAD = 0.8
"""Standard deviation of random weights. At 0.02, the default, attention and hence caches hardly matter."""


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
    parameters : temperature, truncations, repetition penalty.
    end : a stop token.
    at_least : new tokens before which the stop token is impossible.
    threshold : the assistant stops after a draft that it finds less likely.
    schedule : of the number of drafts: ``constant`` or ``heuristic``.
    ensemble : verifies against a mixture that has this much of the target; not exact, on purpose.
    """

    target: Model
    assistant: Model | None = None
    drafts: int = 2
    new_tokens: int = 3
    prompt: Tokens = PROMPT
    parameters: SamplingParameters = field(default_factory=SamplingParameters)
    end: int | None = None
    at_least: int = 0
    threshold: float = 0.0
    schedule: str = "constant"
    ensemble: float | None = None

    def __call__(self) -> Tokens:
        """Sample with drafts; the new tokens."""
        tokens = torch.tensor([self.prompt])
        options = self._sampling() | self._drafting()
        found = self.target.generate(tokens, attention_mask=torch.ones_like(tokens), **options)
        return tuple(found[0, len(self.prompt) :].tolist())

    def target_only(self) -> Tokens:
        """Sample token after token, each from a pass over the whole text; the new tokens.

        Ends where ``generate`` must: after a stop token, or after `new_tokens`.
        """
        tokens: Tokens = ()
        while len(tokens) < self.new_tokens and self.end not in tokens:
            law = self.next_token(tokens)
            tokens = (*tokens, *random.choices(range(len(law)), law))
        return tokens

    def next_token(self, tokens: Tokens) -> tuple[float, ...]:
        """The law of the token after these new ones, in float64."""
        logits = next_logits(self.target, self.prompt + tokens)
        if len(tokens) < self.at_least:
            logits = np.where(np.arange(len(logits)) == self.end, -np.inf, logits)
        return next_token_law(logits, self.parameters, self.prompt, tokens)

    def _sampling(self) -> dict[str, Any]:
        """What ``generate`` calls the parameters; 0 is its way to leave top-k out."""
        parameters = self.parameters
        options = {
            "do_sample": True,
            "max_new_tokens": self.new_tokens,
            "min_new_tokens": self.at_least or None,
            "eos_token_id": self.end,
            "temperature": parameters.temperature,
            "top_k": parameters.top_k or 0,
            "top_p": parameters.top_p,
            "min_p": parameters.min_p,
            "repetition_penalty": parameters.repetition_penalty,
        }
        return {name: value for name, value in options.items() if value is not None}

    def _drafting(self) -> dict[str, Any]:
        """Where drafts come from.

        With the schedule ``heuristic`` the assistant keeps its last number of drafts for the next call of
        ``generate``. A program must keep nothing between calls, so each sets the number anew.
        """
        if self.assistant is None:
            return {"prompt_lookup_num_tokens": self.drafts}
        settings = self.assistant.generation_config
        settings.num_assistant_tokens = self.drafts
        settings.num_assistant_tokens_schedule = self.schedule
        settings.assistant_confidence_threshold = self.threshold
        relaxed = {} if self.ensemble is None else {"assistant_ensemble_weight": self.ensemble}
        return {"assistant_model": self.assistant} | relaxed


@cache
def next_logits(target: Model, tokens: Tokens) -> Logits:
    """Logits of the next token, from one pass without a cache."""
    with torch.no_grad():
        found: Logits = target(torch.tensor([tokens]), use_cache=False).logits[0, -1].double().numpy()
    return found


@cache
def model(kind: str, vocabulary: int, seed: int) -> Model:
    """A tiny model with random weights, of a kind in `CONFIGURATIONS`."""
    name, sizes = CONFIGURATIONS[kind]
    ends = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": 0}
    made = getattr(transformers, f"{name}Config")
    torch.manual_seed(seed)
    config = made(**{"vocab_size": vocabulary, "initializer_range": SPREAD} | ends | sizes)
    found = transformers.AutoModelForCausalLM.from_config(config)
    return found.eval()


_SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32,
}
CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", _SIZES),
    # With larger weights rounding alone moves its laws by more than 1e-6: one pass against another.
    "gpt2": ("GPT2", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "initializer_range": 0.4}),
    "mistral": ("Mistral", _SIZES | {"sliding_window": 3}),
    "lfm2": ("Lfm2", _SIZES | {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}),
}
"""Kinds of models; mistral's cache forgets, that of lfm2 has the state of a short convolution."""
SEEDS = {"llama": 1, "gpt2": 14, "mistral": 1, "lfm2": 18}
"""Targets in whose laws all earlier tokens count."""


def drafted(kind: str, vocabulary: int = 3, **options: Any) -> Case:
    """A case whose assistant is a model of the same kind with other weights."""
    return Case(model(kind, vocabulary, SEEDS[kind]), model(kind, vocabulary, 2), **options)


def looked_up(kind: str, **options: Any) -> Case:
    """A case whose drafts follow the last tokens where they occurred before; by default, 0 1 2 does."""
    return Case(model(kind, 3, SEEDS[kind]), **{"prompt": (1, 2, 0, 1, 2), **options})


SIZES: dict[str, list[tuple[int, int, int]]] = {
    "llama": [*product((3, 4), (1,), (2, 3)), (3, 1, 4), (3, 2, 3), (4, 2, 3), (3, 2, 4), (3, 3, 4)],
    "gpt2": [*product((3, 4), (1,), (2, 3)), (3, 2, 3)],
    "mistral": [(3, 1, 3), (3, 2, 3)],
    "lfm2": [(3, 1, 3), (3, 2, 3)],
}
"""Vocabulary, drafts and new tokens. The last token is never drafted: more drafts are the same case again."""

TWO = SamplingParameters(temperature=1.5, top_k=2)

VARIATIONS: dict[str, dict[str, Any]] = {
    "temperature": {"parameters": SamplingParameters(temperature=0.5)},
    "top_k": {"parameters": TWO},
    "top_p": {"parameters": SamplingParameters(top_p=0.8)},
    "min_p": {"parameters": SamplingParameters(min_p=0.4)},
    "penalty": {"parameters": SamplingParameters(repetition_penalty=1.5)},
    "stop": {"end": 2},
    "stop_later": {"end": 2, "at_least": 2},
    "threshold": {"threshold": 0.4},
    # One draft less after a round that isn't accepted wholly, two more after one that is.
    "fewer_drafts": {"new_tokens": 4, "parameters": TWO, "schedule": "heuristic"},
    "more_drafts": {"drafts": 1, "new_tokens": 5, "parameters": TWO, "schedule": "heuristic"},
}
"""Cases with an assistant, by what is special about them."""

LOOKUPS: dict[str, dict[str, Any]] = {
    "lookup_1": {"drafts": 1},
    "lookup_2": {},
    "lookup_top_k": {"new_tokens": 4, "parameters": SamplingParameters(temperature=0.5, top_k=2)},
    "lookup_stop": {"prompt": (1, 0, 2, 1), "end": 2},
}
"""Cases with drafts that are looked up in the prompt."""


def cases() -> Iterator[tuple[str, Case]]:
    """All cases with their names."""
    for kind, sizes in SIZES.items():
        for vocabulary, drafts, new in sizes:
            options = {"drafts": drafts, "new_tokens": new}
            yield f"{kind}_{vocabulary}_{drafts}_{new}", drafted(kind, vocabulary, **options)
    for name, varied in VARIATIONS.items():
        yield f"llama_{name}", drafted("llama", **varied)
    for name in ("temperature", "top_k", "stop"):
        yield f"gpt2_{name}", drafted("gpt2", **VARIATIONS[name])
    for name, varied in LOOKUPS.items():
        yield f"llama_{name}", looked_up("llama", **varied)
    for name in ("lookup_1", "lookup_top_k", "lookup_stop"):
        yield f"gpt2_{name}", looked_up("gpt2", **LOOKUPS[name])


CASES = dict(cases())
largest = drafted("llama", 4, drafts=3, new_tokens=4)
"""So many paths that it isn't among the cases: 60,000 leave 2e-9 of the probability, in half an hour."""
relaxed = drafted("llama", ensemble=0.5)
"""A control: it has another law, on purpose."""

# The command line finds a case by its name in this module.
globals().update(CASES)


def prove(name: str, case: Case) -> bool:
    """Prove a case and print a row of the table; whether it holds."""
    report = tokenlaw.prove(case, spec=case.target_only, raises=False)
    found = report.evidence[0].statistics or {}
    if "tv_at_most" not in found:
        print(f"{name:20} {report.verdict}: {report.evidence[0].message}", flush=True)
        return False
    paths, bound = found["paths"], found["tv_at_most"]
    print(f"{name:20} {report.verdict:8} {paths:6,} {report.seconds:7.1f} {bound:.1e}", flush=True)
    return report.verdict is Verdict.HOLDS


def main(names: list[str]) -> bool:
    """Prove the cases with these names, or all; whether they hold."""
    torch.set_num_threads(1)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"{'case':20} {'verdict':8} {'paths':>6} {'seconds':>7} TV at most")
    held = [prove(name, CASES[name]) for name in names or CASES]
    return all(held)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
