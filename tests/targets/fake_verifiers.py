"""Verifiers in every form that is accepted, and some that aren't."""

import functools
import time
from types import SimpleNamespace

from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.contracts import VERIFIER, Implementation

__version__ = "2.5"


class Slow(ChainVerifier):
    """Exact, but a call of two rows or more takes a twentieth of a second."""

    def verify(self, batch, *, seed, uniforms=None, noise=None):
        time.sleep(0.05 * (len(batch.num_draft_tokens) > 1))
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)


class Echo:
    """A verifier; claims little, and drafts by itself."""

    claims = "exact"

    def verify(self, batch, *, seed, uniforms=None):
        return batch

    def draft(self, logits, params, *, position, seed):
        return logits


def verify(batch, *, seed):
    return batch


def raising(batch, *, seed):
    raise KeyError("lost row")


def with_options(flag, batch, *, seed):
    return batch


def without_seed(batch):
    return batch


def make_function():
    return verify


def make_nothing():
    return 42


echo = Echo()
bound = functools.partial(with_options, True)
bound_raising = functools.partial(raising)
boasting = SimpleNamespace(verify=verify, claims="everything")
NAMED = Implementation("named", "2", {VERIFIER: make_function}, {VERIFIER: frozenset({"row-seeds"})})
NOTHING = Implementation("nothing", "2", {VERIFIER: make_nothing})
