"""Draws docs/torch-paged-attention.svg from a run of the saved counterexample.

Everything in the picture is read from torch's own tables after each operation; nothing is drawn from memory.
"""

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import torch

from tokenlaw.impl.adapters.torch_paged_attention import IMPLEMENTATION, PagedSequence, TorchPagedStore
from tokenlaw.properties.kv_store_run import run_trace
from tokenlaw.properties.trace import Free, New, Trace, load
from tokenlaw.properties.words import lines
from tokenlaw.spec.contracts import KV_STORE

HERE = Path(__file__).parent
COUNTEREXAMPLE = HERE / "audits" / "torch-paged-attention" / "store-attention.json"
PICTURE = HERE / "torch-paged-attention.svg"

# Okabe and Ito's colours, which colour-blind people can tell apart.
_INK, _FAINT, _LIVE, _STALE = "#222222", "#777777", "#cfe8f7", "#d55e00"
_OLD = "#eeeeee"
_PANEL, _CELL = 300, 40


@dataclass(frozen=True)
class Panel:
    """What torch's tables say about slot 0 after one operation."""

    told: str
    page_table: list[int]
    physical_to_logical: list[int]
    owners: list[str]

    @property
    def stale(self) -> set[int]:
        """Pages that the map still gives to the slot although the page table doesn't."""
        mapped = {page for page, logical in enumerate(self.physical_to_logical) if logical >= 0}
        return mapped - set(self.page_table)


def panels(trace: Trace) -> list[Panel]:
    """Run the trace on torch's classes, and look at the tables of slot 0 after each operation."""
    config = trace.config
    store, live, admitted, shown = TorchPagedStore(config), list[PagedSequence](), 0, []
    owners = [""] * config.num_blocks
    for operation, told in zip(trace.operations, lines(trace), strict=True):
        match operation:
            case New(tokens):
                live.append(store.allocate())
                store.reserve(live[-1], len(tokens))
                payload = torch.ones(config.num_layers, config.num_kv_heads, len(tokens), config.head_size)
                store.append(live[-1], payload, payload)
                for page in _held(store):
                    owners[page] = f"seq {admitted}"
                admitted += 1
            case Free(index):
                store.free(live.pop(index % len(live)))
            case _:
                raise ValueError(f"the picture knows new and free, not {operation}")
        table, mapped = store._paging.page_table[0], store._paging.physical_to_logical[0]
        shown.append(Panel(told, table.tolist(), mapped.tolist(), list(owners)))
    return shown


def _held(store: TorchPagedStore) -> list[int]:
    return [page for page in store._paging.page_table[0].tolist() if page >= 0]


def _text(x: float, y: float, text: str, size: int = 13, colour: str = _INK, anchor: str = "start") -> str:
    style = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'


def _cells(x: float, y: float, label: str, values: list[str], fills: list[str], red: set[int]) -> list[str]:
    parts = [_text(x, y - 7, label, 12, _FAINT)]
    for index, (value, fill) in enumerate(zip(values, fills, strict=True)):
        left, edge = x + index * 64, (_STALE, 3) if index in red else (_INK, 1)
        parts.append(
            f'<rect x="{left}" y="{y}" width="58" height="{_CELL}" rx="4" fill="{fill}" '
            f'stroke="{edge[0]}" stroke-width="{edge[1]}"/>'
        )
        parts.append(_text(left + 29, y + 25, value, 13, _INK, "middle"))
    return parts


def _panel(panel: Panel, number: int) -> list[str]:
    x = 24 + number * _PANEL
    held = set(panel.page_table)
    fills = [_LIVE if page in held else _OLD for page in range(len(panel.owners))]
    table = [str(page) if page >= 0 else "-" for page in panel.page_table]
    mapped = [str(logical) if logical >= 0 else "-" for logical in panel.physical_to_logical]
    plain = ["#ffffff"] * len(table)
    return [
        _text(x, 70, f"{number + 1}. {panel.told}", 14),
        *_cells(x, 105, "page table of slot 0: logical -> page", table, plain, set()),
        *_cells(x, 180, "physical_to_logical of slot 0: page -> logical", mapped, plain, panel.stale),
        *_cells(x, 255, "pages, by who wrote them last", panel.owners, fills, panel.stale),
    ]


def picture(version: str) -> str:
    """The SVG as text; it names the version of torch."""
    trace = load(COUNTEREXAMPLE)
    capabilities = IMPLEMENTATION.capabilities[KV_STORE]
    violation = run_trace(TorchPagedStore, trace, capabilities).violations[0]
    shown = panels(trace)
    width = 24 + _PANEL * len(shown)
    title = "An erased and reused slot attends pages that are no longer its own"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 390" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif">',
        f'<rect width="{width}" height="390" fill="#ffffff"/>',
        _text(24, 34, f"{title} (torch {version}, store/attention)", 17),
    ]
    for number, panel in enumerate(shown):
        parts.extend(_panel(panel, number))
    parts.append(_text(24, 335, f"attention expected {violation.expected}", 13))
    parts.append(_text(24, 355, f"found {violation.found}", 13, _STALE))
    note = "Orange: the map still says that the page belongs to slot 0. erase() cleared a copy of it."
    parts.append(_text(24, 378, note, 12, _FAINT))
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(torch.__version__.partition("+")[0]))
