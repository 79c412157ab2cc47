"""Engines that keep scores in the dtype of the query: held when they declare it, told so when they don't."""

import pytest
import torch

from support.attention_kernels import IDS, Kernel, implementation, run
from tokenlaw.properties.attention_strategies import Dimensions
from tokenlaw.properties.attention_suite import AttentionSuite
from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Verdict

LOW_PRECISION = ["float16", "bfloat16"]
HINT = "with scores kept in {} this error would be within its bound (declare scores_in_input_dtype)"


class Undeclared(Kernel):
    """Plain eager attention: scores and probabilities are stored in the dtype of the query."""

    def attend(self, query, *arguments, **options):
        self.dtype = query.dtype
        return super().attend(query, *arguments, **options)

    def scores(self, query, keys, scale, softcap):
        scores = torch.einsum("qhd,khd->hqk", query, keys).to(self.dtype) * scale
        return scores if softcap is None else softcap * torch.tanh(scores / softcap)

    def alibi(self, slopes, distance):
        return (slopes * distance).to(self.dtype)

    def combine(self, scores, values, sinks):
        lse = self.log_denominator(scores.float(), sinks)
        weights = torch.exp(scores.float() - lse.nan_to_num(neginf=0.0)[..., None])
        return torch.einsum("hqk,khd->qhd", weights.to(self.dtype).float(), values), lse.T


class Declared(Undeclared):
    scores_in_input_dtype = True


class LateMask(Declared):
    """Declares it, and hides the query's own key."""

    def visible(self, distance, window):
        return super().visible(distance + (distance.shape[1] > 1), window)


class LateMaskUndeclared(LateMask):
    scores_in_input_dtype = False


FEW = Profile("few", examples=10, max_operations=1, seconds=60.0)


def only(dtype):
    return AttentionSuite(Dimensions(dtypes=(dtype,)))


def verdicts(evidence):
    return {name: found.message for name, found in evidence.items() if found.verdict is not Verdict.HOLDS}


@pytest.mark.parametrize(
    ("dtype", "seed", "checks"),
    [
        ("float16", 1, ["attention/numerics", "attention/softcap"]),
        ("bfloat16", 1, ["attention/lse", "attention/merge"]),
        *(
            pytest.param(dtype, seed, IDS, marks=pytest.mark.slow)
            for dtype in LOW_PRECISION
            for seed in (1, 2, 3)
        ),
    ],
)
def test_eager_kernels_hold_when_they_declare_it(dtype, seed, checks):
    assert verdicts(run(Declared, suite=only(dtype), seed=seed, profile=FEW, checks=checks)) == {}


@pytest.mark.parametrize("dtype", ["float16", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_eager_kernels_are_told_what_to_declare(dtype):
    found = run(Undeclared, suite=only(dtype), checks=["attention/numerics"])["attention/numerics"]
    assert found.verdict is Verdict.REFUTED
    assert f"\nbound: scores and sums in float32; {HINT.format(dtype)}\n" in found.message
    (again,) = [
        row for row in only(dtype).replay(implementation(Declared), found.counterexample)
        if row.check.id == "attention/numerics"
    ]  # fmt: skip
    assert again.verdict is Verdict.HOLDS


@pytest.mark.parametrize("dtype", LOW_PRECISION)
def test_a_wrong_mask_is_refuted_whatever_is_declared(dtype):
    declared, undeclared = (
        run(kernel, suite=only(dtype), checks=["attention/numerics"])["attention/numerics"]
        for kernel in (LateMask, LateMaskUndeclared)
    )
    assert {declared.verdict, undeclared.verdict} == {Verdict.REFUTED}
    assert f"bound: scores in {dtype} (scores_in_input_dtype is declared)" in declared.message
    assert f"kept in {dtype} this error would still be beyond its bound" in undeclared.message


def test_float32_has_no_wider_bound():
    found = run(LateMask, suite=only("float32"), checks=["attention/numerics"])["attention/numerics"]
    assert found.verdict is Verdict.REFUTED
    assert "\nbound: scores and sums in float32\n" in found.message


def test_the_message_has_the_lines_of_every_suite():
    found = run(LateMask, suite=only("float32"), checks=["attention/numerics"])["attention/numerics"]
    lines = found.message.splitlines()
    title = "Outputs equal contiguous float64 attention within the derived bound."
    assert lines[:2] == [f"attention/numerics (K21) is refuted: {title}", "  severity: wrong content"]
    for line, start in zip(
        lines[2:],
        [
            "  at:       output of row 0, query 0, head 0, channel ",
            "  expected: ",
            "  found:    ",
            "case: lengths [2], 1 queries per row, blocks of ",
            "bound: ",
            "placement: the same kernel with blocks in order errs by ",
        ],
        strict=True,
    ):
        assert line.startswith(start)
    assert lines[-1].endswith(", so where blocks lie isn't the cause")


class Undecided(Kernel):
    scores_in_input_dtype = "float16"


def test_a_declaration_that_is_no_bool_is_named():
    with pytest.raises(ContractError, match="must be True or False; it is 'float16'"):
        run(Undecided)


class Drifts(Kernel):
    """Errs by a thousandth for each key: little in a short row, too much for any bound in a long one."""

    def combine(self, scores, values, sinks):
        output, lse = super().combine(scores, values, sinks)
        return output * (1 + 1e-3 * len(values)), lse


def test_a_fault_does_not_shrink_to_what_a_declaration_excuses():
    suite = AttentionSuite(Dimensions(dtypes=("float16",), block_sizes=(16,)))
    found = run(Drifts, suite=suite, checks=["attention/numerics"])["attention/numerics"]
    assert "this error would still be beyond its bound" in found.message
