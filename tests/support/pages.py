"""Reports that are made for tests of the HTML page, with texts that try to break out of it."""

from dataclasses import replace
from typing import Any

import msgspec

from support.broken_managers import NoCopyOnWrite
from support.list_store import CONFIG
from tokenlaw.comparing import Comparison, compare
from tokenlaw.comparing_reports import side_of_report
from tokenlaw.html_report import to_html
from tokenlaw.impl.faults import STORE_FAULTS
from tokenlaw.impl.reference import REFERENCE
from tokenlaw.properties.frames import film
from tokenlaw.properties.kv_store_frames import film as film_store
from tokenlaw.properties.trace import Append, Fork, New, Operation, Trace, to_data
from tokenlaw.report import Report, Target
from tokenlaw.spec.capabilities import effective_capabilities, probe_capabilities
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, VERIFIER, CacheConfig
from tokenlaw.spec.frames import Frame
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict

HOSTILE = (
    "</script></style><script>document.title='broken'</script>"
    "<img src=https://evil.invalid/a.png onerror=\"document.title='broken'\">&amp;\"'>{{ 7 * 191 }}\x1b[31m"
)
"""What must stand on the page as it is, and do nothing."""

CAPABILITIES = effective_capabilities(
    REFERENCE, BLOCK_MANAGER, REFERENCE.factories[BLOCK_MANAGER](CacheConfig())
)
TORN = Trace((New((7, 8, 9)), Fork(0), Append(1, (5,)), Append(0, (6,))), CacheConfig(num_blocks=3))
"""Two forks that write into one block, where nothing is copied."""

LAW = {
    "what": "completed law",
    "where": HOSTILE,
    "counted": 1_000,
    "confidence": 0.999,
    "outcomes": [
        {"outcome": HOSTILE, "exact": 0.0, "found": 0.2, "count": 200, "low": 0.16, "high": 0.25},
        {"outcome": "[0, 1]", "exact": 0.5, "found": 0.3, "count": 300, "low": 0.25, "high": 0.35},
        {"outcome": "[1, 1]", "exact": 0.26, "found": 0.25, "count": 250, "low": 0.2, "high": 0.3},
    ],
    "others": {"outcomes": 1_234, "exact": 0.24, "found": 0.25},
    "path": ["draft 1, rejected", HOSTILE],
}


def torn_frames() -> list[Frame]:
    """What a manager says that never copies."""
    return msgspec.convert(film(NoCopyOnWrite, TORN, CAPABILITIES, "kv/content")[1], list[Frame])


def store_frames(make: Any, *operations: Operation, check: str | None = None) -> list[Frame]:
    """What a KV store shows, with blocks of two."""
    trace = Trace(operations, CONFIG, KV_STORE)
    capabilities = probe_capabilities(KV_STORE, make(CONFIG)) | {"any-batch"}
    return msgspec.convert(film_store(make, trace, capabilities, check)[1], list[Frame])


def evidence(
    name: str, verdict: Verdict, message: str = "", contract: str = BLOCK_MANAGER, **options: object
) -> Evidence:
    """A row about a check with this name."""
    check = Check(name, "K1", f"The claim of {name}.", contract, Severity.WRONG_CONTENT)
    return Evidence(check, verdict, {"fork": 1_200, "copy": 0}, 12_345, 0.25, message, **options)


def refuted_trace(message: str = "expected 8, found 9") -> Evidence:
    """A refuted trace with its frames."""
    frames = msgspec.to_builtins(torn_frames())
    return evidence("kv/content", Verdict.REFUTED, message, counterexample=to_data(TORN), frames=frames)


STORED = (New((0,)), New((0,)))
"""Two sequences of one position, which the store of the next function puts into one slot."""


def refuted_store() -> Evidence:
    """A refuted trace of a KV store with its frames."""
    frames = msgspec.to_builtins(store_frames(STORE_FAULTS["keyed_by_position"].make, *STORED))
    trace = to_data(Trace(STORED, CONFIG, KV_STORE))
    return evidence("store/bystanders", Verdict.REFUTED, "", KV_STORE, counterexample=trace, frames=frames)


def refuted_law(message: str = "log10 e = 12") -> Evidence:
    """A refuted law with its figure."""
    ledger = [{"kind": "gate", "share": 0.5, "alpha": 5e-10, "observed": 60.0}]
    statistics = {"samples": 4_000, "evidence": "sampled", "ledger": ledger, "laws_shown": [LAW]}
    return evidence("law/completed", Verdict.REFUTED, message, VERIFIER, statistics=statistics)


def holding_law() -> Evidence:
    """A law that holds, with what it promises."""
    ledger = [{"kind": "p-value", "share": 0.5, "alpha": 5e-10, "observed": -0.7}]
    power = {"tv": 0.04, "probability": 0.999, "laws": 3}
    statistics = {"samples": 4_000, "evidence": "sampled", "ledger": ledger, "power": power}
    message = "With 4000 samples any law at TV >= 0.04 would have been refuted."
    return evidence("law/chi-square", Verdict.HOLDS, message, VERIFIER, statistics=statistics)


def report_of(*rows: Evidence, name: str = "mine:make", typed: str = "mine:make") -> Report:
    """A report of these rows."""
    target = Target(name, "1.0", (BLOCK_MANAGER,), {BLOCK_MANAGER: ("fork",)}, typed=typed)
    command = f"tokenlaw audit {typed} --profile dev --seed 5"
    return Report(target, rows, "dev", 5, {"python": "3.11"}, command, 2.5)


def hostile_report() -> Report:
    """A report with a hostile text in every place that a target can write to."""
    crash = evidence(HOSTILE, Verdict.UNKNOWN, f"Traceback\n  {HOSTILE} \ud800")
    known = evidence("kv/known", Verdict.REFUTED, HOSTILE, known=HOSTILE)
    target = Target(HOSTILE, HOSTILE, (HOSTILE,), {HOSTILE: (HOSTILE,)}, typed=HOSTILE)
    frames = [{**frame, "told": HOSTILE, "crash": HOSTILE} for frame in msgspec.to_builtins(torn_frames())]
    trace = evidence("kv/content", Verdict.REFUTED, HOSTILE, counterexample={"a": HOSTILE}, frames=frames)
    named = [{**block, "name": HOSTILE} for block in refuted_store().frames[-1]["blocks"]]
    store = replace(refuted_store(), frames=[{**refuted_store().frames[-1], "blocks": named}])
    rows = (trace, refuted_law(HOSTILE), crash, known, store)
    return Report(target, rows, HOSTILE, 5, {HOSTILE: HOSTILE}, HOSTILE, 2.5)


def page_of(*rows: Evidence) -> str:
    """The page of a report of these rows."""
    return to_html(report_of(*rows).to_data()).decode()


def compared(old: Report, new: Report) -> Comparison:
    """What ``tokenlaw compare old.json new.json`` makes of them."""
    return compare(side_of_report(old.to_data(), "old.json"), side_of_report(new.to_data(), "new.json"))


MATRIX = {
    "schema": "tokenlaw.faults/1",
    "command": "tokenlaw faults --seed 0",
    "profile": "dev",
    "seed": 0,
    "complete": False,
    "faults": [
        {
            "name": "seen",
            "family": "kv",
            "verdict": "killed",
            "effect": HOSTILE,
            "one_check_alone": True,
            "refuted": [{"check": "kv/content", "operations": 3, "samples": None, "tried": 900}],
        },
        {"name": "unseen", "family": "kv", "verdict": "missed", "effect": "leaks", "refuted": []},
    ],
    "innocents": [{"name": "fine", "family": "kv", "verdict": "silent", "reason": "exact", "refuted": []}],
}
"""A matrix of faults that isn't complete: one is killed, one missed; its one innocent is silent."""
