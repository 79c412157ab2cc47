"""Paths a second of exact enumeration, on one thread.

Run with ``pytest benchmarks/bench_enumeration.py -s``. Paths a second of small speculative steps are printed
and stored in ``extra_info`` of the JSON. Where transformers is installed, a whole assisted ``generate()`` of
tiny models is enumerated, and the time of as many plain calls is its rival.
"""

import random
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from tokenlaw.stats.enumeration.exact_law import exact_law

SETTINGS = pytest.mark.benchmark(min_rounds=3, max_time=2.0, timer=time.process_time, warmup=False)
DRAFT = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
TARGET = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def python_step(draft: Any, target: Any) -> Callable[[], list[int]]:
    """A textbook speculative step in plain Python."""

    def program() -> list[int]:
        tokens = range(len(target[0]))
        drafts = [random.choices(tokens, weights=row)[0] for row in draft]
        found: list[int] = []
        for token, p, q in zip(drafts, target, draft, strict=False):
            if random.random() >= p[token] / q[token]:
                residual = [max(one - other, 0) for one, other in zip(p, q, strict=True)]
                return [*found, random.choices(tokens, weights=residual)[0]]
            found.append(token)
        return [*found, random.choices(tokens, weights=target[-1])[0]]

    return program


def torch_step(draft: torch.Tensor, target: torch.Tensor) -> Callable[[], list[int]]:
    """The same with torch, two drafts of four tokens."""

    def program() -> list[int]:
        drafts = torch.multinomial(draft, 1)
        ratios = target[:-1].gather(1, drafts) / draft.gather(1, drafts)
        accepted = (torch.rand(len(draft)) < ratios[:, 0]).tolist()
        count = [*accepted, False].index(False)
        rest = target[count].clone()
        if count < len(draft):
            rest = (rest - draft[count]).clamp(min=0)
        return [*drafts[:count, 0].tolist(), int(torch.multinomial(rest, 1))]

    return program


def race_step(target: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Tokens of three positions by exponential races, as serving engines draw them."""
    return lambda: target.div(torch.empty_like(target).exponential_()).argmax(dim=-1)


def measure(benchmark: BenchmarkFixture, program: Callable[[], Any]) -> None:
    """Time the enumeration of a program and store the paths a second."""
    law = benchmark(exact_law, program)
    benchmark.extra_info["paths a second"] = round(law.paths / benchmark.stats.stats.min)
    print(f"{law.paths} paths, {benchmark.extra_info['paths a second']} a second")


@SETTINGS
@pytest.mark.parametrize("number", [float, Fraction])
def test_python_step(benchmark: BenchmarkFixture, number: Callable[[float], Any]) -> None:
    draft, target = ([[number(one) for one in row] for row in table] for table in (DRAFT, TARGET))
    measure(benchmark, python_step(draft, target))


@SETTINGS
def test_torch_step(benchmark: BenchmarkFixture) -> None:
    measure(benchmark, torch_step(torch.tensor(DRAFT), torch.tensor(TARGET)))


@SETTINGS
def test_races(benchmark: BenchmarkFixture) -> None:
    measure(benchmark, race_step(torch.tensor(TARGET)))


def assisted_generation(vocabulary: int, drafts: int, tokens: int) -> Callable[[], tuple[int, ...]]:
    """An unmodified ``generate`` of a tiny Llama with another one as its assistant."""
    transformers = pytest.importorskip(
        "transformers", reason="transformers isn't installed: pip install 'tokenlaw[transformers]'"
    )

    def model(seed: int) -> Any:
        torch.manual_seed(seed)
        sizes = {"vocab_size": vocabulary, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32}
        ends = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": 0}
        config = transformers.LlamaConfig(**sizes, **heads, **ends, initializer_range=0.8)
        return transformers.LlamaForCausalLM(config).eval()

    target, assistant, prompt = model(1), model(2), torch.tensor([[1, 2, 0]])
    settings = assistant.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = drafts, "constant"
    settings.assistant_confidence_threshold = 0.0

    def program() -> tuple[int, ...]:
        found = target.generate(
            prompt,
            assistant_model=assistant,
            attention_mask=torch.ones_like(prompt),
            do_sample=True,
            max_new_tokens=tokens,
            top_k=0,
        )
        return tuple(found[0, prompt.shape[1] :].tolist())

    program()
    return program


def test_generate_against_plain_calls() -> None:
    program, calls = assisted_generation(3, 2, 3), 0
    exact_law(lambda: torch.rand(1) < 0.5)  # imports what torch imports at first

    def counted() -> tuple[int, ...]:
        nonlocal calls
        calls += 1
        return program()

    ratios = []
    for _ in range(3):
        calls, started = 0, time.process_time()
        law = exact_law(counted)
        enumerated = time.process_time() - started
        started = time.process_time()
        for _ in range(calls):
            program()
        ratios.append(enumerated / (time.process_time() - started))
    print(f"{law.paths} paths of generate(): {min(ratios):.2f} to {max(ratios):.2f} times the plain calls")
    assert law.complete
