"""Children of audits, forked from one process that has imported torch: tests start a hundred of them.

They share a hash seed, and what that process imported is imported in them: where that matters, as in whatever
is to repeat or to import something by itself, a test starts a real child.
"""

import contextlib
import functools
import multiprocessing
import os
import subprocess
import sys
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import numpy as np

from tokenlaw import child

_COMMAND = [sys.executable, "-P", "-m", "tokenlaw.child"]
_MOST_OPEN_FILES = 256
_SERVER = multiprocessing.get_context("forkserver")
_OURS = ("child", "impl.faults.wrappers", "prove_session", "stats.decoder_suite", "stats.verifier_suite")
_SYMBOLS = "torch.fx.experimental.symbolic_shapes"  # a proof imports it
_SERVER.set_forkserver_preload([*(f"tokenlaw.{name}" for name in _OURS), _SYMBOLS])


class WarmProcess:
    """As much of `subprocess.Popen` as `tokenlaw.process.Child` asks for.

    Parameters
    ----------
    command : must be that of a child process of an audit.
    env : the environment of the child.
    options : pipes and a session of its own, which it always has.
    """

    def __init__(self, command: list[str], *, env: dict[str, str], **options: Any) -> None:
        assert (command, options) == (
            _COMMAND,
            dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE) | {"start_new_session": True},
        )
        pipes = [_SERVER.Pipe(duplex=False) for _ in range(4)]
        (child_in, stdin), (stdout, child_out), (stderr, child_err), (ready, started) = pipes
        theirs = (child_in, child_out, child_err, started)
        path = [*filter(None, env.get("PYTHONPATH", "").split(os.pathsep)), *_plain_path()]
        self._process = _SERVER.Process(target=_serve, args=(theirs, env, os.getcwd(), path))
        self._process.start()
        for end in theirs:
            end.close()
        with contextlib.suppress(EOFError):
            ready.recv_bytes()  # the end of it: the child has its session, and nothing else is open
        ready.close()
        self.pid = self._process.pid
        self.stdin, self.stdout, self.stderr = _file(stdin, "wb"), _file(stdout, "rb"), _file(stderr, "rb")

    @property
    def returncode(self) -> int | None:
        """Exit status, or minus the number of the signal that ended it; None while it lives."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same, once it has ended."""
        self._process.join(timeout)
        if (code := self.returncode) is None:
            raise subprocess.TimeoutExpired(_COMMAND, timeout or 0.0)
        return code


@functools.cache
def _plain_path() -> tuple[str, ...]:
    """Where a Python of its own looks for modules, whatever a test put into the path of this process."""
    command = [sys.executable, "-P", "-c", "import sys; print(*sys.path, sep='\\n')"]
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return tuple(
        subprocess.run(command, env=plain, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    )


def _file(end: Connection, mode: str) -> Any:
    with end:
        return os.fdopen(os.dup(end.fileno()), mode)


def _serve(ends: tuple[Connection, ...], env: dict[str, str], folder: str, path: list[str]) -> None:
    """Become what ``python -P -m tokenlaw.child`` would be, but for the imports, and serve one request."""
    os.setsid()
    for standard, end in enumerate(ends[:3]):
        os.dup2(end.fileno(), standard)
    os.closerange(3, _MOST_OPEN_FILES)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)
    sys.path[:], sys.argv[:] = path, [child.__file__]
    np.random.seed()  # else equal in all forks; those of `random` are seeded anew by themselves
    child.main()


WARM = SimpleNamespace(Popen=WarmProcess, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)
"""Stands for the module ``subprocess`` in `tokenlaw.process`."""
