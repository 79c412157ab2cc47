"""Writes docs/reference/ and docs/audits/index.md from the code: ``python docs/generate_reference.py``."""

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docstrings import rendered, signature
from reference_commands import command_line
from reference_report import exit_statuses, report
from reference_traces import traces
from tables import NOTE, field_table, table

import tokenlaw
from tokenlaw.impl.faults.wrappers import WRAPPERS
from tokenlaw.spec import (
    capabilities,
    contracts,
    decoder_contract,
    deviations,
    generation_contracts,
    requests,
)
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.suites import PROFILES, Settings

DOCS = Path(__file__).parent

PROTOCOLS: Mapping[str, tuple[type, ...]] = {
    contracts.BLOCK_MANAGER: (contracts.BlockManager,),
    contracts.KV_STORE: (contracts.KVStore,),
    contracts.PAGED_ATTENTION: (contracts.PagedAttention,),
    contracts.VERIFIER: (generation_contracts.Verifier,),
    contracts.DECODER: (decoder_contract.Decoder, decoder_contract.ServingDecoder),
}
DATA: tuple[type, ...] = (
    contracts.Implementation,
    deviations.KnownDeviation,
    contracts.CacheConfig,
    contracts.BlockCopy,
    generation_contracts.VerifyBatch,
    generation_contracts.TreeBatch,
    RowParameters,
    decoder_contract.DecoderConfig,
    requests.DecodeRequest,
    SamplingParameters,
    requests.Grammar,
)


def code(text: str) -> str:
    """A block that shows a signature; nothing to run."""
    return f'```python unrun="a signature"\n{text}\n```'


def own_methods(protocol: type) -> list[Callable[..., Any]]:
    """Methods that the class itself defines, in order."""
    return [
        found
        for name, found in vars(protocol).items()
        if inspect.isfunction(found) and not name.startswith("_")
    ]


def contract_pages() -> str:
    """Contracts: their methods, their capabilities, and the data that goes through them."""
    parts = [f"# Contracts\n\n{NOTE}\n{rendered(contracts)}"]
    for contract, protocols in PROTOCOLS.items():
        parts.append(f"## {contract}")
        for protocol in protocols:
            parts.append(f"### {protocol.__name__}\n\n{rendered(protocol)}")
            parts += [
                f"{code(signature(one, one.__name__))}\n\n{rendered(one)}" for one in own_methods(protocol)
            ]
        parts.append(f"How capabilities of a {contract} are found:\n\n{capability_table(contract)}")
        parts.append(f"The [broken wrapper](../explanation/controls.md): {WRAPPERS[contract].fault}.")
    parts.append("## Data")
    parts += [f"### {one.__name__}\n\n{rendered(one)}\n\n{field_table(one)}" for one in DATA]
    return "\n\n".join(parts) + "\n"


def capability_table(contract: str) -> str:
    """Which members or keywords show a capability; what has none is declared."""
    keywords = {
        name: f"keyword `{word}` of `{method}`"
        for name, method, word in capabilities.PROBED_KEYWORDS[contract]
    }
    rows = []
    for name, members in capabilities.CAPABILITY_MEMBERS[contract].items():
        shown = ", ".join(f"`{member}`" for member in members) or keywords.get(name, "declared")
        rows.append((f"`{name}`", shown))
    return table(("capability", "shown by"), rows)


def python_names() -> str:
    """Everything that ``import tokenlaw`` offers."""
    parts = [f"# Python\n\n{NOTE}\n{rendered(tokenlaw)}"]
    for name in tokenlaw.__all__:
        found = getattr(tokenlaw, name)
        shown = ""
        if inspect.isfunction(found):
            shown = f"{code(signature(found, name))}\n\n"
        parts.append(f"## {name}\n\n{shown}{rendered(found)}")
    return "\n\n".join(parts) + "\n"


def profiles() -> str:
    """How much each profile tries, and what may be set beside it."""
    rows = [
        (f"`{name}`", f"{one.examples:,}", f"{one.max_operations}", f"{one.seconds:g}", f"{one.requests:,}")
        for name, one in PROFILES.items()
    ]
    head = (
        "profile",
        "examples",
        "operations of one at most",
        "seconds of a contract at most",
        "rows of a verifier",
    )
    return f"""# Profiles and settings

{NOTE}
`--profile`, or `profile=` in a test, says how much is tried. Examples are traces, cases or sessions; rows are
what a verifier is asked, or samples of a decoder. What takes longer than the seconds is left, and a check
that hasn't seen what it is about by then is `not exercised`.

{table(head, rows)}

## Settings

{rendered(Settings)}

{field_table(Settings)}
"""


def audits() -> str:
    """The list of audits, from the pages' own headings and tables."""
    rows = []
    for page in sorted(DOCS.glob("audits/*.md")):
        text = page.read_text()
        if page.name != "index.md":
            name, _, verdict = re.search(r"^# (.*)$", text, re.MULTILINE)[1].partition(": ")
            found = dict(re.findall(r"^\| (version|date) \| (.*?) \|$", text, re.MULTILINE))
            rows.append((f"[{name}]({page.name})", verdict, found["version"], found["date"]))
    return f"""# Audits

{NOTE}
What was audited, each with the command that repeats it. Findings are told in [the gallery](../findings.md).

{table(("target", "verdict", "version", "date"), rows)}
"""


PAGES: Mapping[str, Callable[[], str]] = {
    "audits/index.md": audits,
    "reference/command-line.md": command_line,
    "reference/contracts.md": contract_pages,
    "reference/exit-statuses.md": exit_statuses,
    "reference/profiles.md": profiles,
    "reference/python.md": python_names,
    "reference/report.md": report,
    "reference/traces.md": traces,
}
"""Where each page stands below ``docs/``, and what makes it."""

if __name__ == "__main__":
    for place, make in PAGES.items():
        (DOCS / place).write_text(make())
