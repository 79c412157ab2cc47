"""Rules K11, K18 to K22 and K28 of ``docs/rules.md`` for paged attention, one function each.

A function gets a `Subject` and a case, counts what it exercised, and raises `RuleBrokenError` with what was
expected and found.
"""

import dataclasses
from collections.abc import Callable
from functools import cache

import torch
from msgspec.structs import replace
from torch import Tensor

from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_findings import RuleBrokenError, compare
from tokenlaw.properties.attention_merge import merge_of_parts
from tokenlaw.properties.attention_strategies import boundary_lengths
from tokenlaw.properties.attention_subject import Answer, Expected, Subject
from tokenlaw.properties.attention_tensors import Call

Bounds = Callable[[torch.dtype], Tensor]
"""How far each element may be off, by the dtype in which scores are kept."""


def plain(case: AttentionCase) -> AttentionCase:
    """The same content in contiguous caches, blocks in order, no sharing of blocks, no poison."""
    unused = "no-block" if case.unused == "garbage" else case.unused
    return replace(case, placement=0, layout="contiguous", poison="none", unused=unused)


def numerics(subject: Subject, case: AttentionCase) -> None:
    """K21: outputs are those of contiguous float64 attention, within the derived bound."""
    call = subject.make(case)
    expectation = _expectation(subject, case, call)
    expected = expectation(subject.score_dtype(case))
    answer = subject.ask(call)
    _count_shape(subject, case)
    compared = ("output", answer.output, expected.output)
    broken = _beyond(subject, case, compared, lambda scores: expectation(scores).output_bound)
    if broken is not None:
        error = compare(*compared, expected.output_bound).error
        raise broken.noting(_noise_floor(subject, case, error))


def lse(subject: Subject, case: AttentionCase) -> None:
    """K21 for the log-sum-exp, and the output that comes with it."""
    call = subject.make(case)
    expectation = _expectation(subject, case, call)
    expected = expectation(subject.score_dtype(case))
    answer = subject.ask(call, lse=True)
    assert answer.lse is not None
    _count_shape(subject, case)
    sums, outputs = ("lse", answer.lse, expected.lse), ("output", answer.output, expected.output)
    broken = _beyond(subject, case, sums, lambda scores: expectation(scores).lse_bound)
    broken = broken or _beyond(subject, case, outputs, lambda scores: expectation(scores).output_bound)
    if broken is not None:
        raise broken


def placement(subject: Subject, case: AttentionCase) -> None:
    """K19: physical block ids, the order of rows and unused table entries don't matter."""
    _count_shape(subject, case)
    subject.counts["moved blocks"] += sum(-(-n // case.block_size) for n in case.lengths)
    call = subject.make(case)
    answer, bounds = subject.ask(call), _two_bounds(subject, case, call)
    calm = subject.ask(subject.make(plain(case)))
    _same(subject, case, bounds, answer, calm, "the same call with blocks in order")
    order = torch.arange(len(case.lengths)).flip(0)
    permuted = subject.ask(
        call, query=call.query[order], block_tables=call.block_tables[order], lengths=call.lengths[order]
    )
    subject.counts["permuted rows"] += len(case.lengths) - 1
    back = Answer(permuted.output[order])
    _same(subject, case, bounds, answer, back, "the same call with its rows in reverse order")


def poison(subject: Subject, case: AttentionCase) -> None:
    """K18: what stands in slots that no row may read doesn't reach the output."""
    call = subject.make(case)
    subject.counts["poisoned slots"] += int((~call.readable).sum())
    answer = subject.ask(call)
    if not answer.output.isfinite().all():
        bad = (~answer.output.isfinite()).nonzero()[0].tolist()
        raise RuleBrokenError(
            f"output of row {bad[0]}, query {bad[1]}, head {bad[2]}, channel {bad[3]}",
            "a finite number, whatever stands in slots that no row may read",
            str(answer.output[tuple(bad)].item()),
        )
    bounds = _two_bounds(subject, case, call)
    clean = subject.ask(subject.make(replace(case, poison="none")))
    _same(subject, case, bounds, answer, clean, f"the same call without {case.poison} in unreadable slots")


def inputs(subject: Subject, case: AttentionCase) -> None:
    """K11: ``attend`` changes none of its arguments, nor the memory around the caches."""
    call = subject.make(case)
    tensors = {
        name: getattr(call, name) for name in ("query", "key_cache", "value_cache", "block_tables", "lengths")
    }
    before = {name: _memory(tensor) for name, tensor in tensors.items()}
    subject.ask(call)
    subject.counts["compared arguments"] += len(tensors)
    for name, tensor in tensors.items():
        changed = (_memory(tensor) != before[name]).nonzero()
        if len(changed):
            raise RuleBrokenError(
                f"byte {int(changed[0])} of the memory of {name}",
                "every byte as it was before the call",
                f"{len(changed)} changed bytes, this one the first",
            )


def _memory(tensor: Tensor) -> Tensor:
    """A copy of every byte of the storage behind a tensor, also of those outside of a view."""
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return raw.set_(tensor.untyped_storage()).clone()


def independence(subject: Subject, case: AttentionCase) -> None:
    """K28: the answer is that of a fresh object, whatever was asked before, and again when repeated."""
    call = subject.make(case)
    fresh = subject.ask(call, attention=subject.build())
    used, bounds = subject.build(), _two_bounds(subject, case, call)
    big = replace(case, lengths=tuple(2 * n + case.block_size for n in case.lengths) * 2, seed=case.seed + 1)
    subject.ask(subject.make(big), attention=used)
    small = subject.ask(call, attention=used)
    before = f"a fresh object (this one was asked about rows of {list(big.lengths)} tokens before)"
    _same(subject, case, bounds, small, fresh, before)
    subject.counts["small batch after big batch"] += 1
    before = "a fresh object (this one was asked the same shapes with another scale before)"
    other = dataclasses.replace(call, scale=2 * call.scale, query=-call.query)
    rescaled, anew = (subject.ask(other, attention=one) for one in (used, subject.build()))
    _same(subject, case, _two_bounds(subject, case, other), rescaled, anew, before)
    if "window" in subject.capabilities and case.window is None:
        subject.ask(call, attention=used, options={**call.options, "window": 1})
    after = subject.ask(call, attention=used)
    _same(subject, case, bounds, after, fresh, before)
    subject.counts["same shape, other scale"] += 1
    _same(subject, case, bounds, subject.ask(call, attention=used), after, "the same call a moment ago")
    subject.counts["repeated calls"] += 1


def merge(subject: Subject, case: AttentionCase) -> None:
    """K22: merging the states of any split gives the state of the whole, in any order."""
    whole = subject.make(case)
    expected = subject.expect(case, whole)
    for reverse in (False, True):
        broken = _badly_merged(subject, case, whole, expected, reverse=reverse)
        if broken is not None:
            order = "last part first" if reverse else "in order"
            raise broken.noting(f"merge: the parts were given {order}")


def _badly_merged(
    subject: Subject, case: AttentionCase, whole: Call, expected: Expected, *, reverse: bool
) -> RuleBrokenError | None:
    merged, bounds = merge_of_parts(subject, case, whole, reverse=reverse)
    assert merged.lse is not None
    outputs = ("merged output", merged.output, expected.output)
    sums = ("merged lse", merged.lse, expected.lse)
    broken = _beyond(subject, case, outputs, lambda scores: bounds(scores)[0])
    return broken or _beyond(subject, case, sums, lambda scores: bounds(scores)[1])


def _beyond(
    subject: Subject, case: AttentionCase, compared: tuple[str, Tensor, Tensor], bounds: Bounds
) -> RuleBrokenError | None:
    """What to say of ``compared`` (name, found, wanted) when it is beyond its bound; None within."""
    kept, own = subject.score_dtype(case), getattr(torch, case.dtype)
    worst = compare(*compared, bounds(kept))
    subject.note_ratio(worst.ratio)
    if worst.ratio <= 1:
        return None
    excusable = kept != own and compare(*compared, bounds(own)).ratio <= 1
    expected = f"{worst.wanted:.9g} within {worst.bound:.3g}"
    found = f"{worst.found:.9g}, off by {worst.error:.3g}"
    broken = RuleBrokenError(worst.at, expected, found, excusable=excusable)
    return broken.noting(_assumption(subject, case, excusable=excusable))


def _assumption(subject: Subject, case: AttentionCase, *, excusable: bool) -> str:
    """On what the bound rests, and whether the error would be within the wider one, where there is one."""
    if case.dtype == "float32":
        return "bound: scores and sums in float32"
    if subject.scores_in_input_dtype:
        return f"bound: scores in {case.dtype} (scores_in_input_dtype is declared), sums in float32"
    wider = f"bound: scores and sums in float32; with scores kept in {case.dtype} this error would"
    if excusable:
        return f"{wider} be within its bound (declare scores_in_input_dtype)"
    return f"{wider} still be beyond its bound"


def _two_bounds(subject: Subject, case: AttentionCase, call: Call) -> Bounds:
    """How far two answers to one question may be apart."""
    expectation = _expectation(subject, case, call)
    return lambda scores: 2 * expectation(scores).output_bound


def _expectation(subject: Subject, case: AttentionCase, call: Call) -> Callable[[torch.dtype], Expected]:
    """What the spec answers, by the dtype in which scores are kept."""

    @cache
    def expectation(scores: torch.dtype) -> Expected:
        return subject.expect(case, call, scores)

    return expectation


def _same(
    subject: Subject, case: AttentionCase, bounds: Bounds, found: Answer, other: Answer, what: str
) -> None:
    """Two answers to one question are equal in every bit where that is claimed, else two bounds apart."""
    if not subject.bitwise:
        broken = _beyond(subject, case, ("output", found.output, other.output), bounds)
        if broken is not None:
            broken.expected += f" (two bounds), the output of {what}"
            raise broken
        return
    worst = compare("output", found.output, other.output, torch.zeros_like(found.output))
    if worst.ratio > 0:
        expected = f"{worst.wanted:.9g} in every bit (bitwise is claimed), the output of {what}"
        raise RuleBrokenError(worst.at, expected, f"{worst.found:.9g}, off by {worst.error:.3g}")


def _count_shape(subject: Subject, case: AttentionCase) -> None:
    """Count what a case exercises, by the names that ``exercised_by`` uses."""
    lengths, counts = case.lengths, subject.counts
    counts[f"{case.dtype} calls"] += 1
    counts["boundary lengths"] += sum(n in boundary_lengths(case.block_size) for n in lengths)
    counts["partly filled blocks"] += sum(n % case.block_size > 0 for n in lengths)
    counts["ragged batches"] += len(set(lengths)) > 1
    counts["empty rows"] += sum(n == 0 for n in lengths)
    counts["grouped heads"] += case.group_size > 1
    counts["queries with cached prefix"] += sum(n > case.num_queries > 1 for n in lengths)
    counts["windowed rows"] += sum(case.window is not None and n > case.window for n in lengths)
    counts["softcapped"] += case.softcap is not None
    counts["sinks"] += case.sinks
    counts["alibi rows"] += sum(case.alibi and n > 1 for n in lengths)
    counts["views"] += case.layout != "contiguous"


def _noise_floor(subject: Subject, case: AttentionCase, error: float) -> str:
    """Error of the same kernel on contiguous caches in order, and whether it is as large as ``error``."""
    calm = plain(case)
    call = subject.make(calm)
    expected = subject.expect(calm, call)
    floor = compare("output", subject.ask(call).output, expected.output, expected.output_bound).error
    text = f"placement: the same kernel with blocks in order errs by {floor:.3g}"
    return f"{text}, so where blocks lie isn't the cause" if floor >= error else text
