"""Steps a second of the reference verifiers, on one thread.

Run with ``pytest benchmarks/bench_verifiers.py -s``. Steps a second are printed and stored in ``extra_info``
of the JSON; counting, and the check that the tokens are legal at all, are timed beside verifying. What is
compared is timed in turns, in processor time, and the least of each counts. Where each row has laws of its
own, the rival is a loop over the K + 1 positions of a step that draws a token for each row by an exponential
race in float32 (``exponential_``, then argmax), as engines draw tokens, from laws that are given. The ratio
to one such race, for a single position, is printed as well: verifiers that draw noise once a row come near
it. A step makes nine laws in float64 from logits, and they alone take 2.4, 1.1 and 1.6 times as long as one
race at V = 8, 256 and 32,000 (`row_laws`, 2026-11-30, one of two busy cores).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from tokenlaw.impl.speculative import VERIFIERS, ChainVerifier
from tokenlaw.spec.generation_contracts import TEXTBOOK, Verifier, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.stats.driver import Step
from tokenlaw.stats.protocol import check_emitted
from tokenlaw.stats.scenario import Kind, Scenario, Tables
from tokenlaw.stats.tally import JointTally
from tokenlaw.stats.wide_trial import WideTrial

DRAFTS = 4
CHUNKS = (4_096, 8_192, 16_384, 65_536)
DENSE_ROWS = {8: (4_096, 16_384), 256: (256, 1_024, 4_096), 32_000: (8, 32)}
"""Vocabulary to the numbers of rows that are tried; fewer where laws are large."""

SETTINGS = pytest.mark.benchmark(min_rounds=5, max_time=1.0, timer=time.process_time, warmup=True)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def random_batch(rows: int, vocabulary: int, *, shared: bool) -> VerifyBatch:
    """Random logits; the drafts are drawn from their laws, and about four of five are accepted."""
    generator = torch.Generator().manual_seed(0)
    tables = 1 if shared else rows
    target = 2 * torch.randn(tables, DRAFTS + 1, vocabulary, generator=generator)
    draft = target[:, :DRAFTS] + 0.5 * torch.randn(tables, DRAFTS, vocabulary, generator=generator)
    params = RowParameters.default(rows)
    draft = draft.expand(rows, -1, -1)
    tokens = [
        ChainVerifier().draft(draft[:, position], params, position=position, seed=1)
        for position in range(DRAFTS)
    ]
    lengths = torch.full((rows,), DRAFTS)
    return VerifyBatch(torch.stack(tokens, 1), lengths, target.expand(rows, -1, -1), draft, params)


def step(verifier: Verifier, batch: VerifyBatch) -> Callable[[], object]:
    """One call on a batch whose laws aren't made yet."""
    return lambda: verifier.verify(replace(batch), seed=1)


def seconds_in_turns(calls: Mapping[str, Callable[[], object]], rounds: int = 100) -> dict[str, float]:
    """The fastest of some rounds of each, processor time; in turns, since the machine's speed changes."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: min(taken) for name, taken in times.items()}


@SETTINGS
@pytest.mark.parametrize("rows", CHUNKS)
@pytest.mark.parametrize("vocabulary", [8, 256, 32_000])
def test_chain_on_shared_tables(benchmark: BenchmarkFixture, vocabulary: int, rows: int) -> None:
    """Bars of the project: 4e6 steps a second at V = 8, 2.5e6 at V = 256, 5e5 at V = 32,000."""
    benchmark(step(ChainVerifier(), random_batch(rows, vocabulary, shared=True)))
    report(benchmark, "chain, shared", vocabulary, rows)


@pytest.mark.parametrize("rows", CHUNKS)
@pytest.mark.parametrize("vocabulary", [8, 256])
def test_counting_on_top(benchmark: BenchmarkFixture, vocabulary: int, rows: int) -> None:
    """Bar of the project: at most 20 % of a step. Whole sequences are counted at V = 8, tokens at V = 256."""
    batch, verifier = random_batch(rows, vocabulary, shared=True), ChainVerifier()
    assert batch.draft_logits is not None
    logits, draft_logits = (part[0].unsqueeze(1) for part in (batch.target_logits, batch.draft_logits))
    scenario = Scenario("counted", (Kind("one", logits, draft_logits, DRAFTS),), share=1.0)
    tally: JointTally | WideTrial = (
        JointTally(Tables.of(scenario), seed=0)
        if vocabulary == 8
        else WideTrial(verifier, scenario, claims=TEXTBOOK, seed=0, device="cpu")
    )
    emitted = verifier.verify(batch, seed=1)
    answer = Step(torch.zeros(rows, dtype=torch.int64), batch, emitted, check_emitted(emitted, batch))
    calls = {
        "verify": step(verifier, batch),
        "check": lambda: check_emitted(answer.emitted, batch),
        "count": lambda: tally.add(answer),
    }
    found: list[dict[str, float]] = []
    benchmark.pedantic(lambda: found.append(seconds_in_turns(calls)), rounds=1)
    shares = {name: taken / found[0]["verify"] for name, taken in found[0].items()}
    benchmark.extra_info["shares_of_a_step"] = shares
    print(
        f"\ncounting, V = {vocabulary}, {rows:,} rows: {shares['count']:.0%} of verifying, "
        f"the check of the tokens {shares['check']:.0%}"
    )


@SETTINGS
@pytest.mark.parametrize("name", [name for name in VERIFIERS if name != "chain"])
@pytest.mark.parametrize("vocabulary", [8, 256])
def test_others_on_shared_tables(benchmark: BenchmarkFixture, vocabulary: int, name: str) -> None:
    rows = 8_192
    benchmark(step(VERIFIERS[name](), random_batch(rows, vocabulary, shared=True)))
    report(benchmark, f"{name}, shared", vocabulary, rows)


@SETTINGS
@pytest.mark.parametrize("given", [True, False], ids=["laws given", "from logits"])
@pytest.mark.parametrize(
    ("vocabulary", "rows"), [(v, rows) for v, many in DENSE_ROWS.items() for rows in many]
)
def test_chain_on_rows_of_their_own(
    benchmark: BenchmarkFixture, vocabulary: int, rows: int, given: bool
) -> None:
    """Bar of the project: at most 1.5 times the time of the loop."""
    batch, verifier = random_batch(rows, vocabulary, shared=False), ChainVerifier()
    laws = list(batch.target_probs.float().contiguous().unbind(1))
    noise = torch.empty(rows, vocabulary)
    assert batch.draft_probs is not None
    calls: dict[str, Callable[[], object]] = {
        "verify": (lambda: verifier.verify(batch, seed=1)) if given else step(verifier, batch),
        "loop": lambda: [(law / noise.exponential_()).argmax(1) for law in laws],
        "race": lambda: (laws[0] / noise.exponential_()).argmax(1),
    }
    benchmark(calls["verify"])
    report(benchmark, "chain, dense, laws given" if given else "chain, dense, from logits", vocabulary, rows)
    found = seconds_in_turns(calls, 60 if vocabulary < 1_000 else 10)
    ratios = {name: found["verify"] / found[name] for name in ("loop", "race")}
    print(f"  {ratios['loop']:.2f} of a loop of {DRAFTS + 1} races, {ratios['race']:.2f} of one race")
    benchmark.extra_info |= {f"ratio_to_{name}": ratio for name, ratio in ratios.items()}


def report(benchmark: BenchmarkFixture, name: str, vocabulary: int, rows: int) -> None:
    """Print steps a second, and keep them."""
    steps = rows / fastest_round(benchmark)
    benchmark.extra_info["steps_a_second"] = steps
    print(f"\n{name}: V = {vocabulary:,}, {rows:,} rows: {steps:,.0f} steps a second")


def fastest_round(benchmark: BenchmarkFixture) -> float:
    """Seconds of processor time."""
    assert benchmark.stats is not None
    return float(benchmark.stats.stats.min)
