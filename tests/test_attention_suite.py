"""The suite of paged attention: it holds on honest kernels and every check refutes its own fault."""

import math

import pytest
import torch
from torch import Tensor

from tokenlaw.properties.attention_strategies import Dimensions
from tokenlaw.properties.attention_suite import AttentionSuite
from tokenlaw.properties.running import Profile
from tokenlaw.properties.trace import TraceError
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import PAGED_ATTENTION, ContractError, Implementation
from tokenlaw.spec.verdicts import Verdict

ALL = frozenset(CAPABILITY_MEMBERS[PAGED_ATTENTION])


def implementation(kernel, capabilities=ALL, name="kernel"):
    return Implementation(name, "1", {PAGED_ATTENTION: kernel}, {PAGED_ATTENTION: frozenset(capabilities)})


class Kernel:
    """Row by row, every step of its own."""

    def attend(
        self, query, key_cache, value_cache, block_tables, lengths, scale, *,
        window=None, softcap=None, sinks=None, alibi_slopes=None, return_lse=False,
    ):  # fmt: skip
        states = []
        for row, length in enumerate(self.lengths(lengths)):
            keys = self.gather(key_cache, block_tables[row], length).float()
            values = self.gather(value_cache, block_tables[row], length).float()
            heads = self.kv_heads(query.shape[2], key_cache.shape[2])
            scores = self.scores(query[row].float(), keys[:, heads], scale, softcap)
            distance = self.distance(query.shape[1], length)
            if alibi_slopes is not None:
                scores = scores + self.alibi(alibi_slopes[:, None, None], distance)
            scores = self.masked(scores, self.visible(distance, window), softcap)
            states.append(self.combine(scores, values[:, heads], sinks))
        output = torch.stack([state[0] for state in states]).to(query.dtype)
        return (output, torch.stack([state[1] for state in states])) if return_lse else output

    def lengths(self, lengths):
        return lengths.tolist()

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        pages = cache[table[: -(-length // cache.shape[1])].long()]
        return pages.reshape(-1, *cache.shape[2:])[:length]

    def kv_heads(self, query_heads, kv_heads):
        return torch.arange(query_heads) // (query_heads // kv_heads)

    def scores(self, query, keys, scale, softcap):
        scores = scale * torch.einsum("qhd,khd->hqk", query, keys)
        return scores if softcap is None else softcap * torch.tanh(scores / softcap)

    def distance(self, num_queries, length):
        positions = length - num_queries + torch.arange(num_queries)
        return torch.arange(length)[None] - positions[:, None]

    def alibi(self, slopes, distance):
        return slopes * distance

    def visible(self, distance, window):
        return (distance <= 0) & (distance > -(window or math.inf))

    def masked(self, scores, visible, softcap):
        return scores.masked_fill(~visible, -math.inf)

    def combine(self, scores, values, sinks):
        lse = self.log_denominator(scores, sinks)
        weights = torch.exp(scores - lse.nan_to_num(neginf=0.0)[..., None])
        return torch.einsum("hqk,khd->qhd", weights, values), self.reported(lse).T

    def log_denominator(self, scores, sinks):
        lse = torch.logsumexp(scores, -1)
        return lse if sinks is None else torch.logaddexp(lse, sinks.float()[:, None])

    def reported(self, lse):
        return lse

    def merge(self, outputs, lses):
        lse = torch.logsumexp(lses, 0)
        weights = torch.exp(lses - lse.nan_to_num(neginf=0.0))
        return (weights[..., None] * outputs.float()).sum(0).to(outputs.dtype), lse


class HalfWeights(Kernel):
    """Rounds probabilities to the dtype of the values, as fused kernels do."""

    def attend(self, query, *arguments, **options):
        self.dtype = query.dtype
        return super().attend(query, *arguments, **options)

    def combine(self, scores, values, sinks):
        lse = self.log_denominator(scores, sinks)
        weights = torch.exp(scores - lse.nan_to_num(neginf=0.0)[..., None]).to(self.dtype).float()
        return torch.einsum("hqk,khd->qhd", weights, values), lse.T


SMALL = Profile("small", examples=40, max_operations=1, seconds=60.0)
SUITE = AttentionSuite()
IDS = tuple(check.id for check in SUITE.checks)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(kernel, *, capabilities=ALL, checks=IDS, seed=1, suite=SUITE, profile=SMALL):
    evidence = suite.run(
        implementation(kernel, capabilities),
        profile=profile,
        seed=seed,
        selected=frozenset(checks),
        progress=lambda what, done, total: None,
    )
    return {found.check.id: found for found in evidence}


def refuted(evidence):
    return {name for name, found in evidence.items() if found.verdict is Verdict.REFUTED}


class BoundaryMask(Kernel):
    """Forgets the token that starts a new block."""

    def visible(self, distance, window):
        visible = super().visible(distance, window)
        if distance.shape[1] % 4 == 1 and distance.shape[1] > 1:
            visible[:, -1] = False
        return visible


class TailByProduct(Kernel):
    """Masks weights but multiplies the whole last page: 0 * NaN is NaN."""

    def gather(self, cache, table, length):
        return cache[table[: -(-length // cache.shape[1])].long()].reshape(-1, *cache.shape[2:])

    def distance(self, num_queries, length):
        return super().distance(num_queries, length)

    def scores(self, query, keys, scale, softcap):
        self.slots = len(keys)
        return super().scores(query, keys, scale, softcap)

    def masked(self, scores, visible, softcap):
        tail = torch.zeros(visible.shape[0], self.slots - visible.shape[1], dtype=torch.bool)
        return super().masked(scores, torch.cat((visible, tail), 1), softcap)

    def alibi(self, slopes, distance):
        return torch.nn.functional.pad(slopes * distance, (0, self.slots - distance.shape[1]))


class GroupModulo(Kernel):
    """Head h reads KV head h % kv_heads."""

    def kv_heads(self, query_heads, kv_heads):
        return torch.arange(query_heads) % kv_heads


class NotCausal(Kernel):
    """Every query of a chunk sees the whole row."""

    def visible(self, distance, window):
        return distance > -(window or math.inf)


class WindowOffByOne(Kernel):
    """Sees one position too many."""

    def visible(self, distance, window):
        return super().visible(distance, window + 1 if window else None)


class SoftcapIgnored(Kernel):
    """Takes the argument and does nothing with it."""

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale, None)


class SoftcapAfterMask(Kernel):
    """Caps minus infinity too, so that masked keys count."""

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale, None)

    def masked(self, scores, visible, softcap):
        masked = super().masked(scores, visible, softcap)
        return masked if softcap is None else softcap * torch.tanh(masked / softcap)


class SinksIgnored(Kernel):
    """Takes the argument and does nothing with it."""

    def log_denominator(self, scores, sinks):
        return super().log_denominator(scores, None)


class AlibiSign(Kernel):
    """Rewards distance."""

    def alibi(self, slopes, distance):
        return -slopes * distance


class BinaryLse(Kernel):
    """Reports the log-sum-exp in base 2."""

    def reported(self, lse):
        return lse / math.log(2)


class MergeEmptyIsNaN(Kernel):
    """Subtracts minus infinity from itself."""

    def merge(self, outputs, lses):
        largest = lses.amax(0)
        weights = torch.exp(lses - lses.amin(0))
        lse = largest + torch.exp(lses - largest).sum(0).log()
        return ((weights / weights.sum(0))[..., None] * outputs.float()).sum(0).to(outputs.dtype), lse


class MergeAverages(Kernel):
    """Gives every part the same weight."""

    def merge(self, outputs, lses):
        return outputs.float().mean(0).to(outputs.dtype), super().merge(outputs, lses)[1]


class MergeSlightlyOff(Kernel):
    """Takes the first part for a little more than it is."""

    def merge(self, outputs, lses):
        output, _ = super().merge(outputs, lses + 1e-3 * (torch.arange(len(lses)) == 0)[:, None, None, None])
        return output, super().merge(outputs, lses)[1]


class MergeKeepsLastLse(Kernel):
    """Merges outputs, but not the log-sum-exps."""

    def merge(self, outputs, lses):
        output, _ = super().merge(outputs, lses)
        return output, lses[-1]


class EmptyIsNaN(Kernel):
    """Divides by the sum of no weights."""

    def combine(self, scores, values, sinks):
        output, lse = super().combine(scores, values, sinks)
        return output / (lse.T[..., None] > -math.inf).transpose(0, 1).float(), lse


class KeepsLengths(Kernel):
    """Plans once for the largest batch and keeps that plan."""

    def __init__(self):
        self.longest = 0

    def distance(self, num_queries, length):
        self.longest = max(self.longest, length)
        return super().distance(num_queries, length)

    def visible(self, distance, window):
        visible = super().visible(distance, window)
        if self.longest > distance.shape[1] + 16:
            visible[:, :1] = distance.shape[1] == 1
        return visible


class RightOnce(Kernel):
    """Leaves something behind in its first call that spoils every other."""

    calls = 0

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale if self.calls == 1 else 2 * scale, softcap)

    def lengths(self, lengths):
        self.calls += 1
        return super().lengths(lengths)


class KeepsScale(Kernel):
    """Caches its graph by shape, without the scale."""

    def __init__(self):
        self.graphs = {}

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale, **options):
        scale = self.graphs.setdefault((query.shape, tuple(lengths.tolist())), scale)
        self.graphs[(query.shape, tuple(lengths.tolist()))] = scale if len(self.graphs) < 2 else 2 * scale
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale, **options)


class IgnoresStrides(Kernel):
    """Reads a view as if it were contiguous."""

    def gather(self, cache, table, length):
        flat = torch.as_strided(cache, cache.shape, torch.empty(cache.shape).stride())
        return super().gather(flat, table, length)


class LogicalIsPhysical(Kernel):
    """Uses the logical block index as the physical one."""

    def gather(self, cache, table, length):
        return super().gather(cache, torch.arange(len(table)) % len(cache), length)


class RowOrder(Kernel):
    """Takes the page table of the row before it."""

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale, **options):
        if len(lengths) > 1 and lengths[0] < lengths[1]:
            block_tables = block_tables.clone()
            block_tables[0] = block_tables[1]
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale, **options)


class UnusedEntries(Kernel):
    """Lets the table entry after the last block choose the order of the sums."""

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale * (1 + self.tilt), softcap)

    def gather(self, cache, table, length):
        used = -(-length // cache.shape[1])
        self.tilt = 1e-6 * float(table[used:].clamp(min=0).sum())
        return super().gather(cache, table, length)


class ScalesQueryInPlace(Kernel):
    """Scales the query where it stands."""

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale, **options):
        query *= scale
        return super().attend(query, key_cache, value_cache, block_tables, lengths, 1.0, **options)


class ZeroesTail(Kernel):
    """Clears the rest of the last page in the caller's cache, NaN or not."""

    def gather(self, cache, table, length):
        if length % cache.shape[1]:
            cache[table[length // cache.shape[1]].long(), length % cache.shape[1] :] = 0
        return super().gather(cache, table, length)


FAULTS = [
    (BoundaryMask, "attention/numerics"),
    (TailByProduct, "attention/poison"),
    (GroupModulo, "attention/gqa"),
    (NotCausal, "attention/chunked-prefill"),
    (WindowOffByOne, "attention/window"),
    (SoftcapIgnored, "attention/softcap"),
    (SoftcapAfterMask, "attention/softcap"),
    (SinksIgnored, "attention/sinks"),
    (AlibiSign, "attention/alibi"),
    (BinaryLse, "attention/lse"),
    (MergeEmptyIsNaN, "attention/merge"),
    (MergeAverages, "attention/merge"),
    (MergeSlightlyOff, "attention/merge"),
    (MergeKeepsLastLse, "attention/merge"),
    (EmptyIsNaN, "attention/empty"),
    (KeepsLengths, "attention/independence"),
    (RightOnce, "attention/independence"),
    (KeepsScale, "attention/independence"),
    (IgnoresStrides, "attention/layout"),
    (LogicalIsPhysical, "attention/placement"),
    (RowOrder, "attention/placement"),
    (UnusedEntries, "attention/placement"),
    (ScalesQueryInPlace, "attention/inputs"),
    (ZeroesTail, "attention/inputs"),
]


@pytest.mark.parametrize(("kernel", "check"), FAULTS, ids=[kernel.__name__ for kernel, _ in FAULTS])
def test_each_fault_is_refuted_by_its_check(kernel, check):
    found = run(kernel, checks=[check])[check]
    assert found.verdict is Verdict.REFUTED, found.message
    assert "case: lengths" in found.message
    again = SUITE.replay(implementation(kernel), found.counterexample)
    assert check in {evidence.check.id for evidence in again if evidence.verdict is Verdict.REFUTED}
    honest = SUITE.replay(implementation(Kernel), found.counterexample)
    assert {evidence.verdict for evidence in honest} == {Verdict.HOLDS}


@pytest.mark.parametrize("kernel", [Kernel, HalfWeights])
def test_honest_kernels_hold(kernel):
    evidence = run(kernel, profile=Profile("small", examples=60, max_operations=1, seconds=60.0))
    assert {
        name: found.message for name, found in evidence.items() if found.verdict is not Verdict.HOLDS
    } == {}
    for found in evidence.values():
        assert all(found.exercised[event] > 0 for event in found.check.exercised_by)


def test_a_fault_is_reported_by_its_own_check_only():
    after_gqa = ["attention/gqa", "attention/chunked-prefill", "attention/layout", "attention/merge"]
    assert refuted(run(GroupModulo, checks=after_gqa)) == {"attention/gqa"}
    after_softcap = ["attention/softcap", "attention/window", "attention/lse"]
    assert refuted(run(SoftcapAfterMask, checks=after_softcap)) == {"attention/softcap"}


def test_consequences_of_a_broken_base_are_marked():
    evidence = run(LogicalIsPhysical, checks=["attention/numerics", "attention/gqa"])
    assert "note:" not in evidence["attention/numerics"].message
    assert "attention/numerics was refuted before" in evidence["attention/gqa"].message


def test_same_seed_same_evidence():
    first, again = (run(SoftcapAfterMask, checks=["attention/softcap"], seed=5) for _ in range(2))
    assert first["attention/softcap"].message == again["attention/softcap"].message
    assert first["attention/softcap"].operations == again["attention/softcap"].operations


class Plain(Kernel):
    """Has the mandatory part only, in float32 only."""

    def attend(self, query, key_cache, value_cache, block_tables, lengths, scale):
        if query.dtype != torch.float32:
            raise TypeError("float32 only")
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale)


def test_what_is_not_declared_is_not_supported():
    verdicts = {name: found.verdict for name, found in run(Plain, capabilities=()).items()}
    held = {"attention/numerics", "attention/inputs", "attention/placement", "attention/independence"}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.HOLDS} == held
    assert {verdicts[name] for name in set(IDS) - held} == {Verdict.NOT_SUPPORTED}


def test_what_is_not_exercised_is_no_pass():
    suite = AttentionSuite(Dimensions(group_sizes=(1,)))
    found = run(Kernel, checks=["attention/gqa"], suite=suite)["attention/gqa"]
    assert found.verdict is Verdict.NOT_EXERCISED
    assert "grouped heads" in found.message


def test_a_slow_machine_still_exercises_every_check():
    evidence = run(Kernel, profile=Profile("none", examples=40, max_operations=1, seconds=0.0))
    assert {found.verdict for found in evidence.values()} == {Verdict.HOLDS}
    assert evidence["attention/numerics"].operations < 10


class Crashes(Kernel):
    def gather(self, cache, table, length):
        if length > 4:
            raise IndexError("page out of range")
        return super().gather(cache, table, length)


def test_exceptions_are_unknown_with_the_smallest_case():
    found = run(Crashes, checks=["attention/numerics"])["attention/numerics"]
    assert found.verdict is Verdict.UNKNOWN
    assert "IndexError: page out of range" in found.message
    assert found.counterexample["lengths"] == [5]


class NoDevice(Kernel):
    def __init__(self):
        raise OSError("no such device")


def test_a_factory_that_raises_is_unknown():
    evidence = run(NoDevice)
    assert {found.verdict for found in evidence.values()} == {Verdict.UNKNOWN}
    assert all("no such device" in found.message for found in evidence.values())


class WrongShape(Kernel):
    def attend(self, query, *arguments, **options):
        return super().attend(query, *arguments, **options).squeeze(1)


class WrongDtype(Kernel):
    def attend(self, query, *arguments, **options):
        return super().attend(query, *arguments, **options).double()


@pytest.mark.parametrize(
    ("kernel", "text"),
    [(WrongShape, "expected output of shape [1, 1, "), (WrongDtype, "found torch.float64")],
)
def test_wrong_shape_and_dtype_are_named(kernel, text):
    found = run(kernel, checks=["attention/numerics"])["attention/numerics"]
    assert found.verdict is Verdict.REFUTED
    assert text in found.message


class MovesBits(Kernel):
    """A rounding error that depends on where the first block lies: allowed, unless bitwise is claimed."""

    def gather(self, cache, table, length):
        return super().gather(cache, table, length).float() * (1 + 2e-7 * float(table[0] > 0))


def test_equal_bits_are_asked_only_of_those_who_claim_them():
    checks = ["attention/placement"]
    assert refuted(run(MovesBits, checks=checks)) == {"attention/placement"}
    assert refuted(run(MovesBits, checks=checks, capabilities=ALL - {"bitwise"})) == set()


def test_replay_names_what_the_target_lacks():
    found = run(WindowOffByOne, checks=["attention/window"])["attention/window"]
    with pytest.raises(TraceError, match="doesn't declare window"):
        SUITE.replay(implementation(Kernel, ALL - {"window"}), found.counterexample)


def test_an_implementation_without_the_contract_is_refused():
    with pytest.raises(ContractError, match="no paged-attention factory"):
        SUITE.replay(Implementation("none", "1", {}), {"schema": "tokenlaw.attention/1"})


def test_every_check_has_a_fault():
    assert {check for _, check in FAULTS} == set(IDS)
