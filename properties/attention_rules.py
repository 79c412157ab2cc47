"""Rules K11, K18 to K22 and K28 of ``docs/rules.md`` for paged attention, one function each.

A function gets a `Subject` and a case, counts what it exercised, and raises `RuleBrokenError` with what was
expected and found.
"""

import torch
from msgspec.structs import replace
from torch import Tensor

from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_merge import merge_of_parts
from tokenlaw.properties.attention_strategies import boundary_lengths
from tokenlaw.properties.attention_subject import Answer, RuleBrokenError, Subject, compare
from tokenlaw.properties.attention_tensors import Call


def plain(case: AttentionCase) -> AttentionCase:
    """The same content in contiguous caches, blocks in order, no sharing of blocks, no poison."""
    unused = "no-block" if case.unused == "garbage" else case.unused
    return replace(case, placement=0, layout="contiguous", poison="none", unused=unused)


def numerics(subject: Subject, case: AttentionCase) -> None:
    """K21: outputs are those of contiguous float64 attention, within the derived bound."""
    call = subject.make(case)
    expected = subject.expect(case, call)
    answer = subject.ask(call)
    _count_shape(subject, case)
    ratio, text = compare("output", answer.output, expected.output, expected.output_bound)
    subject.note_ratio(ratio)
    if ratio > 1:
        raise RuleBrokenError(f"{text}; {_noise_floor(subject, case)}")


def lse(subject: Subject, case: AttentionCase) -> None:
    """K21 for the log-sum-exp, and the output that comes with it."""
    call = subject.make(case)
    expected = subject.expect(case, call)
    answer = subject.ask(call, lse=True)
    assert answer.lse is not None
    _count_shape(subject, case)
    for name, found, wanted, bound in (
        ("lse", answer.lse, expected.lse, expected.lse_bound),
        ("output", answer.output, expected.output, expected.output_bound),
    ):
        ratio, text = compare(name, found, wanted, bound)
        subject.note_ratio(ratio)
        if ratio > 1:
            raise RuleBrokenError(text)


def placement(subject: Subject, case: AttentionCase) -> None:
    """K19: physical block ids, the order of rows and unused table entries don't matter."""
    _count_shape(subject, case)
    subject.counts["moved blocks"] += sum(-(-n // case.block_size) for n in case.lengths)
    call = subject.make(case)
    answer, bound = subject.ask(call), _tolerance(subject, case, call)
    _same(subject, bound, answer, subject.ask(subject.make(plain(case))), "blocks in order")
    order = torch.arange(len(case.lengths)).flip(0)
    permuted = subject.ask(
        call, query=call.query[order], block_tables=call.block_tables[order], lengths=call.lengths[order]
    )
    subject.counts["permuted rows"] += len(case.lengths) - 1
    _same(subject, bound, answer, Answer(permuted.output[order]), "rows in reverse order")


def poison(subject: Subject, case: AttentionCase) -> None:
    """K18: what stands in slots that no row may read doesn't reach the output."""
    call = subject.make(case)
    subject.counts["poisoned slots"] += int((~call.readable).sum())
    answer = subject.ask(call)
    if not answer.output.isfinite().all():
        bad = (~answer.output.isfinite()).nonzero()[0].tolist()
        raise RuleBrokenError(
            f"expected finite outputs, found {answer.output[tuple(bad)].item()} at row {bad[0]}, "
            f"query {bad[1]}, head {bad[2]}, channel {bad[3]}: unreadable slots hold {case.poison} "
            f"in {case.poison_in}"
        )
    clean = subject.ask(subject.make(replace(case, poison="none")))
    bound = _tolerance(subject, case, call)
    _same(subject, bound, answer, clean, f"the same call without {case.poison} in unreadable slots")


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
                f"expected {name} unchanged, found {len(changed)} bytes changed, the first "
                f"{int(changed[0])} bytes into its memory"
            )


def _memory(tensor: Tensor) -> Tensor:
    """A copy of every byte of the storage behind a tensor, also of those outside of a view."""
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return raw.set_(tensor.untyped_storage()).clone()


def independence(subject: Subject, case: AttentionCase) -> None:
    """K28: the answer is that of a fresh object, whatever was asked before, and again when repeated."""
    call = subject.make(case)
    fresh = subject.ask(call, attention=subject.build())
    used = subject.build()
    bound = _tolerance(subject, case, call)
    big = replace(case, lengths=tuple(2 * n + case.block_size for n in case.lengths) * 2, seed=case.seed + 1)
    subject.ask(subject.make(big), attention=used)
    small = subject.ask(call, attention=used)
    _same(
        subject, bound, small, fresh, f"a fresh object (this one was asked {list(big.lengths)} tokens before)"
    )
    subject.counts["small batch after big batch"] += 1
    subject.ask(call, attention=used, scale=2 * call.scale, query=-call.query)
    if "window" in subject.capabilities and case.window is None:
        subject.ask(call, attention=used, options={**call.options, "window": 1})
    after = subject.ask(call, attention=used)
    _same(
        subject,
        bound,
        after,
        fresh,
        "a fresh object (this one was asked the same shapes with another scale before)",
    )
    subject.counts["same shape, other scale"] += 1
    _same(subject, bound, subject.ask(call, attention=used), after, "the same call a moment ago")
    subject.counts["repeated calls"] += 1


def merge(subject: Subject, case: AttentionCase) -> None:
    """K22: merging the states of any split gives the state of the whole, in any order."""
    whole = subject.make(case)
    expected = subject.expect(case, whole)
    for reverse in (False, True):
        merged, bounds = merge_of_parts(subject, case, whole, expected, reverse=reverse)
        assert merged.lse is not None
        for name, found, wanted, bound in (
            ("merged output", merged.output, expected.output, bounds[0]),
            ("merged lse", merged.lse, expected.lse, bounds[1]),
        ):
            ratio, text = compare(name, found, wanted, bound)
            subject.note_ratio(ratio)
            if ratio > 1:
                order = "last part first" if reverse else "in order"
                raise RuleBrokenError(f"{text}; parts cut at {list(case.splits)} modulo length + 1, {order}")


def _tolerance(subject: Subject, case: AttentionCase, call: Call) -> Tensor:
    """How far two answers to one question may be apart: no bit where that is claimed, else two bounds."""
    if subject.bitwise:
        return torch.zeros(call.query.shape, dtype=torch.float64)
    return 2 * subject.expect(case, call).output_bound


def _same(subject: Subject, bound: Tensor, found: Answer, other: Answer, what: str) -> None:
    ratio, text = compare("output", found.output, other.output, bound)
    if ratio > 1:
        claim = "equal bits, as bitwise claims" if subject.bitwise else "at most two bounds apart"
        raise RuleBrokenError(f"expected the output of {what}, {claim}: {text}")
    subject.note_ratio(ratio)


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


def _noise_floor(subject: Subject, case: AttentionCase) -> str:
    """Error of the same kernel on contiguous storage in order: is the fault in paging or in arithmetic?"""
    calm = plain(case)
    call = subject.make(calm)
    error = (subject.ask(call).output - subject.expect(calm, call).output).abs().max().item()
    return f"its own error with blocks in order and contiguous caches is {error:.3g}"
