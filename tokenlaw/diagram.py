"""Diagrams of traces: the trace is run on a target, and what that says of itself is drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.counterexamples import load
from tokenlaw.diagram_sheet import caption_of, draw_sheet, notes
from tokenlaw.diagram_svg import to_svg
from tokenlaw.errors import BadUse
from tokenlaw.report import Report
from tokenlaw.runner import replay
from tokenlaw.spec.frames import Frame
from tokenlaw.spec.suites import DEFAULTS, Settings
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.text import one_line

DRAWN = ("block-manager", "kv-store")
"""Contracts whose traces are drawn."""


@dataclass(frozen=True)
class Picture:
    """Numbered frames, and what is written above and below them."""

    frames: tuple[tuple[int, Frame], ...]
    title: str
    caption: tuple[str, ...]


def taken(
    trace: Path, target: str = "reference", step: int | None = None, settings: Settings = DEFAULTS
) -> Picture:
    """Run a trace of a block manager or a KV store, in a child process, and look after each operation.

    Raises
    ------
    BadUse
        It is no such trace, it is too large to be drawn, or it has no such step.
    """
    data = load(trace)
    contract = data.get("contract", "block-manager")
    if not str(data.get("schema")).startswith("tokenlaw.trace/") or contract not in DRAWN:
        told = one_line(str(contract))
        raise BadUse(f"{trace}: only traces of a {' or a '.join(DRAWN)} are drawn; this is one of a {told}")
    report = replay(data, target, source=str(trace), settings=settings)
    found = next((row.frames for row in report.evidence if row.frames), None)
    if found is None:
        raise BadUse(f"{trace}: can't be drawn: {_why(report)}")
    frames = tuple(enumerate(msgspec.convert(found, list[Frame]), start=1))
    if step is not None:
        if step > len(frames):
            raise BadUse(f"--step {step}: {trace} has {len(frames)} steps")
        frames = frames[step - 1 : step]
    name = one_line(f"{report.target.name} {report.target.version}")
    return Picture(frames, f"{trace.stem} on {name}", tuple(caption_of(data)))


def _why(report: Report) -> str:
    """Why there is nothing to be seen."""
    broken = report.with_verdict(Verdict.UNKNOWN)
    return one_line(broken[0].message) if broken else "it has too many operations, or blocks, to be read"


def _svg(picture: Picture) -> bytes:
    return to_svg(draw_sheet(picture.frames, picture.title, picture.caption)).encode()


def _png(picture: Picture) -> bytes:
    from tokenlaw.diagram_png import to_png

    return to_png(draw_sheet(picture.frames, picture.title, picture.caption))


def _text(picture: Picture) -> bytes:
    from tokenlaw.diagram_text import plain

    return plain(picture.frames, picture.title, picture.caption).encode()


FORMS: Mapping[str, Callable[[Picture], bytes]] = {".svg": _svg, ".png": _png, ".txt": _text}
"""What the end of a file's name asks for."""


def rendered(picture: Picture, suffix: str) -> bytes:
    """The picture as the content of a file whose name ends so."""
    return FORMS[suffix](picture)


def show_on_terminal(picture: Picture) -> None:
    """Print the picture: in colours on a terminal, else as plain text."""
    from rich.console import Console
    from rich.text import Text

    from tokenlaw.diagram_text import LEGEND, lines
    from tokenlaw.terminal import is_interactive

    if not is_interactive():
        print(_text(picture).decode(), end="")
        return
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(Text(picture.title, style="bold"))
    for number, frame in picture.frames:
        console.print()
        for line in lines(frame, number):
            pieces: list[Any] = [(text, style) for text, style in line]
            console.print(Text.assemble(*pieces))
    for text in (LEGEND, *notes(picture.frames, picture.caption)):
        console.print(Text(f"\n{text}", style="dim"))
