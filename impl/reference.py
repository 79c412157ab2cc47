"""The reference implementations as targets: audited through the same door as everybody else's."""

from dataclasses import replace
from importlib.metadata import version

from tokenlaw.impl.engine import ReferenceDecoder, TransformerDecoder
from tokenlaw.impl.paged import REFERENCE as PAGED
from tokenlaw.impl.speculative import (
    BlockVerifier,
    ChainVerifier,
    GreedyVerifier,
    OneHotVerifier,
    SampleAndMatchVerifier,
    TopKTreeVerifier,
    TreeVerifier,
    TypicalAcceptance,
)
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import DECODER, VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import Verifier

ROW_SEEDS, DRAFT, UNIFORMS, NOISE, TREES = "row-seeds", "draft", "uniforms", "noise", "trees"

REFERENCE = replace(
    PAGED,
    factories={**PAGED.factories, VERIFIER: ChainVerifier, DECODER: ReferenceDecoder},
    capabilities={
        **PAGED.capabilities,
        VERIFIER: frozenset({ROW_SEEDS, DRAFT, UNIFORMS, NOISE}),
        DECODER: frozenset(CAPABILITY_MEMBERS[DECODER]) - {"own-models"},
    },
    summary="paged KV cache with prefixes, attention by gathering, chain verification; a decoder of all",
)
"""Every contract; speculation by the textbook."""

TRANSFORMER = Implementation(
    "reference-transformer",
    version("tokenlaw"),
    {DECODER: TransformerDecoder},
    {DECODER: frozenset(CAPABILITY_MEMBERS[DECODER])},
    "tiny transformers that read keys and values from the paged cache",
)
"""The same decoder over models of its own."""


def _rule(name: str, verifier: type[Verifier], summary: str, *capabilities: str) -> Implementation:
    return Implementation(
        f"reference-{name}",
        version("tokenlaw"),
        {VERIFIER: verifier},
        {VERIFIER: frozenset({ROW_SEEDS, *capabilities})},
        summary,
    )


BLOCK = _rule("block", BlockVerifier, "block verification (Sun et al. 2024)", DRAFT, UNIFORMS, NOISE)
ONE_HOT = _rule(
    "one-hot", OneHotVerifier, "drafts count as one-hot, however they were drawn", DRAFT, UNIFORMS, NOISE
)
SAMPLE_AND_MATCH = _rule("sample-and-match", SampleAndMatchVerifier, "draws from the target, compares", DRAFT)
TREE = _rule("tree", TreeVerifier, "several candidates, with and without replacement", DRAFT, UNIFORMS, TREES)
TOP_K_TREE = _rule("top-k-tree", TopKTreeVerifier, "candidates count as one-hot (EAGLE-2)", TREES)
TYPICAL = _rule("typical", TypicalAcceptance, "typical acceptance (Medusa): approximate, and says so")
GREEDY = _rule("greedy", GreedyVerifier, "compares with the argmax, whatever the temperature: approximate")
