"""Unmodified assisted generation of transformers is enumerated, and equal to target-only decoding."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Law, total_variation

PROMPT = torch.tensor([[1, 2, 0]])
NEW = 2


def model(kind: str, vocabulary: int, seed: int) -> Any:
    """A tiny random model whose cache matters."""
    transformers = pytest.importorskip(
        "transformers", reason="transformers isn't installed: pip install 'tokenlaw[transformers]'"
    )
    torch.manual_seed(seed)
    ends = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": 0}
    if kind == "gpt2":
        sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
        config = transformers.GPT2Config(vocab_size=vocabulary, **sizes, **ends, initializer_range=0.8)
        return transformers.GPT2LMHeadModel(config).eval()
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "max_position_embeddings": 32,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.LlamaConfig(vocab_size=vocabulary, **sizes, **heads, **ends, initializer_range=0.8)
    return transformers.LlamaForCausalLM(config).eval()


def generation(target: Any, **options: Any) -> Callable[[], tuple[int, ...]]:
    """Sampling of new tokens; returns them."""

    def program() -> tuple[int, ...]:
        found = target.generate(
            PROMPT,
            attention_mask=torch.ones_like(PROMPT),
            do_sample=True,
            max_new_tokens=NEW,
            top_k=0,
            **options,
        )
        return tuple(found[0, PROMPT.shape[1] :].tolist())

    return program


def target_only(target: Any, vocabulary: int) -> Law:
    """The law of new tokens, multiplied up from the target's probabilities in float64."""

    def laws(tokens: list[int]) -> list[float]:
        with torch.no_grad():
            logits = target(torch.tensor([tokens])).logits[0, -1]
        law: list[float] = logits.double().softmax(-1).tolist()
        return law

    found = {}
    for new in product(range(vocabulary), repeat=NEW):
        weight, tokens = 1.0, PROMPT[0].tolist()
        for token in new:
            weight *= laws(tokens)[token]
            tokens.append(token)
        found[new] = weight
    return Law(found)


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("drafts", [1, 2])
def test_assisted_generation_has_the_law_of_the_target(kind, drafts):
    target, assistant = model(kind, 3, 1), model(kind, 3, 2)
    settings = assistant.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = drafts, "constant"
    settings.assistant_confidence_threshold = 0.0
    law = exact_law(generation(target, assistant_model=assistant))
    assert law.complete
    assert total_variation(law, target_only(target, 3).probabilities)[1] < 1e-6


@pytest.mark.engines
def test_plain_sampling_has_the_law_of_the_target():
    target = model("llama", 4, 1)
    law = exact_law(generation(target))
    assert law.paths == 16
    assert total_variation(law, target_only(target, 4).probabilities)[1] < 1e-6
