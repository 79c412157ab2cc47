"""Writes ``docs/comparison.md`` from what the benchmarks of other projects' criteria wrote.

``PYTHONPATH=benchmarks python docs/generate_comparison.py 2026-11-30 verifiers.json caches.json``, where
``benchmarks/bench_peers.py --json verifiers.json`` and ``benchmarks/bench_kv_peers.py --json caches.json``
wrote the figures. Prints the short table of the README.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from peers import CRITERIA, SUITES
from peers.measured import MEASURED
from peers.paged_content import CALLS

from tokenlaw.runner import versions

OURS, KILLED = "tokenlaw", 0.9
Columns = dict[str, dict[str, Any]]

TITLES = {
    "V0 ratio": "vLLM V0, distance ratio",
    "vLLM V1 suite": "vLLM V1, its four sampler tests",
    "vLLM V2 suite": "vLLM runner V2, chi-square",
    "TV .008": "vLLM PR 47386, total variation",
    "KL": "TensorRT-LLM PR 6542, KL",
    "cosine": "flashinfer, cosine",
    "FI chain": "flashinfer, chain validity",
    "HF": "transformers, two unit tests",
    "DeepSpec-like": "DeepSpec PR 48, chi-square by place",
    "naive first": "scipy chi-square of first tokens",
    "greedy text": "greedy text equality",
}
"""What the README shows, in words."""

HEAD = """# What other tests see of the same faults

Written by `docs/generate_comparison.py`. The criteria that engines and their users test speculative
sampling and paged caches with today, re-stated in our own code (`benchmarks/peers/`) from their public test
files, and asked of the same planted faults as our own suite.

Measured on {date}, tokenlaw {tokenlaw}, torch {torch}, on two cores that did other work too:

```sh unrun="takes an hour"
tokenlaw faults --family verifier --json audits.json
python benchmarks/bench_peers.py --seeds {seeds} --base-seeds {base} --matrix audits.json --json peers.json
tokenlaw faults --family kv --json audits.json
python benchmarks/bench_kv_peers.py --seeds 3 --matrix audits.json --json caches.json
```

(Without `--matrix` a benchmark runs the audits itself.) Read it with four things in mind. The
faults were collected, and our suite written, by the same hands; the reports behind the faults are
other people's. The criteria were written for their own engines and at their own cost; here each is
given more than it had, new laws for every seed among other things. A fault counts as killed at 90 %
of the seeds, which for {seeds} seeds are all of them. Our own suite was run with one seed a fault
([20 of 20 seeds](law-evidence.md) was measured apart), and its false alarms are counted on the
{our_base} exact verifiers in place of {base} seeds of one.

## Speculative sampling
"""

CACHES = """
## Caches

A content-only test reads every sequence back through its block table, or from the store, and compares it
with what a contiguous cache would hold: {calls} random calls, first without sharing, as kernels are tested,
then with forks, trims and prompts that hit the prefix cache. It can't see what is lost, leaked, written
where it mustn't be, or hit one step too early, as long as the content is still right. Our own `kv/content`
and `store/content` alone, on our traces, are the third line; the difference to the last one is what the
other rules of the same audit see.

| criterion | faults of block managers and stores | exact caches failed | CPU s |
| --- | --: | --: | --: |
"""


def killed(column: dict[str, Any], faults: Iterable[str]) -> int:
    """How many of the faults it kills."""
    return sum(column["shares"][fault] >= KILLED for fault in faults)


def together(columns: Columns) -> dict[str, Any]:
    """All criteria of others as one."""
    others = [column for name, column in columns.items() if name != OURS]
    return {"shares": {fault: max(one["shares"][fault] for one in others) for fault in others[0]["shares"]}}


def summary(columns: Columns) -> str:
    """One line a criterion."""
    kinds, others = _groups(columns)
    heads = ["criterion", "whose", f"kills of {len(kinds)}", f"of {len(others)} more"]
    rows = [[*heads, "false alarms", "requests", "CPU s"], ["---", "---", *["--:"] * 5]]
    sources = {criterion.name: criterion.source for criterion in CRITERIA}
    shown = [(name, column) for name, column in columns.items() if name != OURS]
    for name, column in [*shown, ("all of these", together(columns)), (OURS, columns[OURS])]:
        source = sources.get(name, ", ".join(SUITES.get(name, ())))
        rows.append([name, source, str(killed(column, kinds)), str(killed(column, others)), *_cost(column)])
    return _table(rows)


def short(columns: Columns) -> str:
    """The table of the README."""
    kinds, _ = _groups(columns)
    rows = [["test", f"kills of {len(kinds)}", "false alarms", "requests", "CPU s"], ["---", *["--:"] * 4]]
    shown = [(title, columns[name]) for name, title in TITLES.items()]
    everything = f"all {len(CRITERIA)} criteria together"
    for title, column in [*shown, (everything, together(columns)), ("**tokenlaw**", columns[OURS])]:
        rows.append([title, str(killed(column, kinds)), *_cost(column)])
    return _table(rows)


def _groups(columns: Columns) -> tuple[list[str], list[str]]:
    """The 35 kinds, and the other faults."""
    faults = list(columns[OURS]["shares"])
    return [one for one in faults if one in MEASURED], [one for one in faults if one not in MEASURED]


def _table(rows: Iterable[Iterable[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cost(column: dict[str, Any]) -> list[str]:
    """False alarms, requests and seconds; nothing for the union."""
    if "requests" not in column:
        return ["", "", ""]
    alarms = f"{column['false_alarms']} of {column['base_runs']}"
    return [alarms, f"{column['requests']:,}", f"{column['seconds']:.2f}"]


def only_ours(columns: Columns) -> str:
    """What nobody else kills, and what nobody kills."""
    union, ours = together(columns)["shares"], columns[OURS]["shares"]
    alone = [fault for fault in ours if ours[fault] >= KILLED > union[fault]]
    nobody = [fault for fault in ours if max(ours[fault], union[fault]) < KILLED]
    text = f"\nKilled by tokenlaw alone: {', '.join(alone) or 'none'}.\n"
    return text + (f"Killed by nobody: {', '.join(nobody)}.\n" if nobody else "")


def matrix(columns: Columns) -> str:
    """Fault x criterion."""
    rows = [["fault", *columns], ["---", *["--:"] * len(columns)]]
    for fault in columns[OURS]["shares"]:
        shares = [column["shares"][fault] for column in columns.values()]
        rows.append([fault, *(f"{share:.2g}" if share else "." for share in shares)])
    return _table(rows)


def caches(columns: Columns) -> str:
    """Content-only tests, and what they don't see."""
    text = CACHES.format(calls=CALLS)
    for name, column in columns.items():
        seen = sum(share == 1 for share in column["faults"].values())
        alarms = sum(share > 0 for share in column["innocents"].values())
        figures = (f"{seen} of {len(column['faults'])}", f"{alarms} of {len(column['innocents'])}")
        text += f"| {name} | {' | '.join(figures)} | {column['seconds']:.2f} |\n"
    others = [column["faults"] for name, column in columns.items() if name != OURS]
    unseen = [fault for fault in columns[OURS]["faults"] if max(one[fault] for one in others) < 1]
    return f"{text}\nSeen by no content: {', '.join(unseen)}.\n"


def document(verifiers: Columns, paged: Columns, date: str) -> str:
    """The whole page."""
    peers, ours, known = next(iter(verifiers.values())), verifiers[OURS], versions()
    head = HEAD.format(
        date=date,
        tokenlaw=known["tokenlaw"],
        torch=known["torch"],
        seeds=peers["seeds"],
        base=peers["base_runs"],
        our_base=ours["base_runs"],
    )
    fewer = [
        f"{name} was run with {column['seeds']} seed a fault."
        for name, column in verifiers.items()
        if name != OURS and column["seeds"] < peers["seeds"]
    ]
    text = f"{head}\n{summary(verifiers)}{only_ours(verifiers)}{' '.join(fewer)}\n"
    text += f"\nShare of seeds in which a criterion fails a fault (. is never):\n\n{matrix(verifiers)}"
    return text + caches(paged)


if __name__ == "__main__":
    of_verifiers, of_caches = (json.loads(Path(name).read_text()) for name in sys.argv[2:4])
    page = document(of_verifiers, of_caches, sys.argv[1])
    Path(__file__).with_name("comparison.md").write_text(page)
    print(short(of_verifiers), end="")
