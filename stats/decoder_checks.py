"""The checks of laws of the decoder contract."""

from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.verdicts import Check, Severity

LAW, SAMPLING, STOP, PENALTIES, GRAMMAR, SAMPLES, REQUESTS, FORK, LOGPROBS = (
    "decoder/law",
    "decoder/law-sampling",
    "decoder/law-stop",
    "decoder/law-penalties",
    "decoder/law-grammar",
    "decoder/law-samples",
    "decoder/law-requests",
    "decoder/law-fork",
    "decoder/law-logprobs",
)

EVENT = "situations"
"""Small situations whose laws were found out."""


def _check(number: int, name: str, title: str, *needs: str, severity: Severity = Severity.WRONG_LAW) -> Check:
    return Check(name, f"E{number}", title, DECODER, severity, frozenset(needs), (EVENT,))


DECODER_LAW_CHECKS = (
    _check(1, LAW, "What is decoded has the law of target-only decoding."),
    _check(
        2,
        SAMPLING,
        "Temperature, truncations, bias and allowed tokens give exactly the law that they stand for.",
        "sampling",
    ),
    _check(3, STOP, "A sample ends with its first stop token, also inside a run of accepted drafts.", "stop"),
    _check(
        4,
        PENALTIES,
        "At every position of a run of drafts penalties see the drafts before it, and nothing else.",
        "penalties",
    ),
    _check(
        5,
        GRAMMAR,
        "The grammar holds at every position of a run of drafts, the bonus token's too.",
        "grammar",
    ),
    _check(6, SAMPLES, "Samples of one request are independent, each with the exact law.", "samples"),
    _check(
        7,
        REQUESTS,
        "Requests that run, join and leave together are independent, each with the exact law.",
        "requests",
        severity=Severity.CROSS_SEQUENCE,
    ),
    _check(
        8,
        FORK,
        "After a fork both go on independently of each other, with the exact law.",
        "requests",
        "fork",
        severity=Severity.CROSS_SEQUENCE,
    ),
    _check(
        9,
        LOGPROBS,
        "Each returned log-probability is that of its token under the law that it was drawn from.",
        "requests",
        "logprobs",
        severity=Severity.WRONG_CONTENT,
    ),
)

BY_ID = {check.id: check for check in DECODER_LAW_CHECKS}
