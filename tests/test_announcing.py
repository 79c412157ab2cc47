"""What suites announce while they run, so that it isn't lost when their process dies."""

from support.attention_kernels import run
from tokenlaw.impl.faults.attention_formula import SoftcapAfterMask
from tokenlaw.spec.announcing import listening
from tokenlaw.spec.verdicts import Evidence, Verdict


def test_the_attention_suite_announces_findings_at_once_and_every_decided_check() -> None:
    heard: list[Evidence] = []
    with listening(lambda _: None, heard.append):
        evidence = run(SoftcapAfterMask, checks=["attention/softcap", "attention/lse"])
    told = [(found.check.id, found.verdict) for found in heard]
    assert told == [
        ("attention/softcap", Verdict.REFUTED),
        ("attention/softcap", Verdict.REFUTED),
        ("attention/lse", Verdict.HOLDS),
    ]
    assert heard[1] == evidence["attention/softcap"]
    assert heard[0].counterexample is not None
