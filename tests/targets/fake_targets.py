"""Implementations that misbehave in one way each."""

import contextlib
import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType

from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, Implementation
from tokenlaw.spec.verdicts import Verdict

__version__ = "7.5"


class Manager:
    """Has every mandatory member of a block manager; holds."""

    def __init__(self, config):
        self.config = config

    def allocate(self, tokens):
        return 0

    def append(self, sequence, tokens):
        pass

    def free(self, sequence):
        pass

    def block_table(self, sequence):
        return []

    def num_free_blocks(self):
        return 16


class Store:
    """Has every mandatory member of a KV store; holds."""

    def __init__(self, config):
        pass

    def allocate(self):
        return 0

    def append(self, sequence, keys):
        pass

    def read(self, sequence, layer):
        pass

    def free(self, sequence):
        pass


class Nearly(Manager):
    """Lacks a member of the contract, and switches another off."""

    block_table = num_free_blocks = None


class Refuted(Manager):
    verdicts = MappingProxyType({"fake/content": Verdict.REFUTED})


class Forking(Manager):
    def fork(self, sequence):
        return 1


class NotExercised(Manager):
    verdicts = MappingProxyType({"fake/content": Verdict.NOT_EXERCISED})


class Raising(Manager):
    def append(self, sequence, tokens):
        raise KeyError("lost block")


class Quitting(Manager):
    def append(self, sequence, tokens):
        sys.exit("leaving")


class Hanging(Manager):
    def append(self, sequence, tokens):
        if tokens == (2,):
            if "LINGERING_PID" in os.environ:
                Path(os.environ["LINGERING_PID"]).write_text(str(os.getpid()))
            wait_for_ever()


def wait_for_ever():
    while True:
        time.sleep(0.01)


class Dying(Manager):
    def append(self, sequence, tokens):
        print("my last words", flush=True)
        os._exit(7)


class Segfaulting(Manager):
    def append(self, sequence, tokens):
        ctypes.string_at(0)

    def fork(self, sequence):
        return 1


class RefutedThenDying(Refuted):
    def append(self, sequence, tokens):
        if tokens == (3,):
            os._exit(7)

    def fork(self, sequence):
        return 1


class RefutedThenRaising(Refuted):
    def append(self, sequence, tokens):
        if tokens == (3,):
            raise KeyError("lost block")


class Forging(Manager):
    """Writes to every file descriptor that might be the one through which the child speaks."""

    def append(self, sequence, tokens):
        for descriptor in range(20):
            with contextlib.suppress(OSError):
                os.write(descriptor, b'{"type": "finished"}\n\xff\x00 and half a line')


class Daemonizing(Manager):
    """Leaves a process behind that left the session, and holds every file descriptor."""

    def append(self, sequence, tokens):
        if tokens == (0,) and os.fork() == 0:
            os.setsid()
            Path(os.environ["LINGERING_PID"]).write_text(str(os.getpid()))
            time.sleep(600)


class Noisy(Manager):
    """Prints things that look like what the child says to its parent, and leaves a process behind."""

    def append(self, sequence, tokens):
        print('{"type": "finished"}', flush=True)
        os.write(1, b"\xff\x00 not even text\n")
        sys.__stdout__.write("more\n")
        if tokens == (0,):
            left = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
            Path(os.environ["LINGERING_PID"]).write_text(str(left.pid))


def raising_factory(config):
    raise ValueError("no\ndevice")


class Unreadable:
    def __getattr__(self, name):
        raise RuntimeError("no")


unreadable = Unreadable()


class Unprobable:
    """Nothing can be asked of it."""

    def __init__(self, config):
        pass

    def __getattribute__(self, name):
        raise ValueError("no")


class Unspeakable(BaseException):
    def __str__(self):
        raise RuntimeError("no words")


def unspeakable_factory(config):
    raise Unspeakable


def interrupted_factory(config):
    raise KeyboardInterrupt


def wrong_factory(config):
    return {"blocks": 16}


def attention_factory():
    class Attention:
        def attend(self, query, *caches):
            return query

    return Attention()


BOTH = Implementation("both", "1.2", {BLOCK_MANAGER: Manager, KV_STORE: Store})
STORE_ONLY = Implementation("store", "1.2", {KV_STORE: Store})
LYING = Implementation("lying", "1.2", {BLOCK_MANAGER: Manager}, {BLOCK_MANAGER: frozenset({"fork"})})
NAMED = Implementation("named", "1.2", {BLOCK_MANAGER: Refuted})
STRAY = Implementation("stray", "1.2", {KV_STORE: Store}, {"kv-stor": frozenset({"fork"})})
NUMBER = 42
WRONG = Implementation("wrong", "1.2", {BLOCK_MANAGER: wrong_factory})
