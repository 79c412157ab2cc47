"""The command line.

Exit statuses: 0 holds, 1 refuted, 2 void, unknown or not exercised, 3 bad use, 4 fault of tokenlaw itself.
Starts quickly: nothing heavy is imported before a command needs it.
"""

import os
import re
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from tokenlaw import __version__
from tokenlaw.cli_audit import audit
from tokenlaw.cli_compare import compare
from tokenlaw.cli_diagram import diagram
from tokenlaw.cli_faults import faults
from tokenlaw.cli_plan import plan
from tokenlaw.cli_prove import prove
from tokenlaw.cli_report import report
from tokenlaw.commands import Once
from tokenlaw.errors import BadUse, ToolFault
from tokenlaw.options import Device
from tokenlaw.report_files import Html, Json, ReportFiles
from tokenlaw.text import one_line, without_middle

BAD_USE, TOOL_FAULT, INTERRUPTED, BROKEN_PIPE = 3, 4, 130, 141

# Recent typer brings its own copy of click; the base class of its errors is found either way.
_UsageError: type[Exception] = typer.BadParameter.__base__ or Exception

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Is this LLM decoding engine exact? Audits paged KV caches, attention and speculative decoding.",
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"tokenlaw {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        commands = "audit, prove, replay, report, compare, diagram, plan, faults or list"
        raise typer.BadParameter(f"say what to do: {commands} (tokenlaw --help)")
    if context.invoked_subcommand == "audit":
        from tokenlaw.configuration import configuration

        context.default_map = {"audit": configuration(Path.cwd()).defaults()}


for _command in (audit, prove, faults, report, compare, diagram, plan):
    app.command(cls=Once)(_command)


@app.command(cls=Once)
def replay(
    context: typer.Context,
    trace: Annotated[Path, typer.Argument(help="A saved counterexample.")],
    target: Annotated[str, typer.Option(help="Name of an installed adapter, or module:attribute.")],
    json: Json = None,
    html: Html = None,
    device: Device = "cpu",
) -> int:
    """Run one saved counterexample on a target."""
    from tokenlaw import terminal
    from tokenlaw.counterexamples import load
    from tokenlaw.runner import replay as run_replay
    from tokenlaw.spec.suites import Settings

    files = ReportFiles.named(context, json=json, html=html)
    replayed = run_replay(load(trace), target, source=str(trace), settings=Settings(device=device))
    return files.finish(replayed, lambda: terminal.show(replayed, {}))


@app.command("list", cls=Once)
def list_targets(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> int:
    """List the installed adapters, the contracts that they fulfil, and their capabilities."""
    from tokenlaw.listing import as_lines, describe_all
    from tokenlaw.writing import formatted

    described = describe_all()
    print(formatted(described).decode() if json else "\n".join(as_lines(described)))
    return 0


def run() -> None:
    """Entry point of the ``tokenlaw`` command."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character must not turn a verdict into a fault.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _end)
    sys.exit(main(sys.argv[1:]))


def _end(number: int, _: FrameType | None) -> NoReturn:
    """End as Ctrl-C does: the child is killed and its folder removed on the way out."""
    sys.exit(128 + number)


def main(arguments: list[str]) -> int:
    """Run a command line; the exit status. Bad use is one line on stderr, never a traceback."""
    try:
        status = int(typer.main.get_command(app).main(arguments, "tokenlaw", standalone_mode=False) or 0)
    except _UsageError as error:
        said = getattr(error, "format_message", error.__str__)()
        return _bad_use(said.replace(": Value error, ", ": "))  # newer versions of typer quote pydantic
    except BadUse as error:
        return _bad_use(str(error))
    except ToolFault as error:
        return _tool_fault(str(error))
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # typer ends with 1, which would mean refuted. The reader has seen enough; nothing more can be said to
        # it, not even when Python closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except Exception:
        return _tool_fault(traceback.format_exc())
    if status == INTERRUPTED:  # what typer makes of Ctrl-C
        print("tokenlaw: interrupted", file=sys.stderr)
    return status


def _bad_use(message: str) -> int:
    print(f"tokenlaw: {one_line(message)}", file=sys.stderr)
    return BAD_USE


def _tool_fault(text: str) -> int:
    # hypothesis adds notes of any length after the line that names the exception.
    named = re.findall(r"^[\w.]+(?:: .*)?$", text, re.MULTILINE) or [text.rstrip()]
    last = one_line(without_middle(named[-1], 500))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="tokenlaw-fault-", suffix=".txt", delete=False, errors="backslashreplace"
        ) as file:
            file.write(f"tokenlaw {__version__}, arguments {sys.argv[1:]}\n{text}")
        details = file.name
    except OSError:  # there is no folder for it
        details = f"\n{text}"
    print(f"tokenlaw: fault of tokenlaw itself ({last}); details: {details}", file=sys.stderr)
    return TOOL_FAULT
