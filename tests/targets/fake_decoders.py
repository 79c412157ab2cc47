"""Decoders as users write them: a class, a function made by a factory, a decoder itself; and what is none."""

import os
import time

from tokenlaw.spec.contracts import Implementation
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.requests import is_finished, law_of_next


def greedy(model, request):
    tokens = ()
    while not is_finished(request, tokens):
        law = law_of_next(model, request, tokens)
        tokens += (max(range(len(law)), key=law.__getitem__),)
    return [tokens] * request.samples


class Plain:
    """Decodes greedily, without drafts."""

    def __init__(self, config: DecoderConfig) -> None:
        self.model = config.target

    def decode(self, request, *, seed):
        return greedy(self.model, request)


class Wrong(Plain):
    """The last of several tokens is another one."""

    def decode(self, request, *, seed):
        found = super().decode(request, seed=seed)
        return [(*tokens[:-1], 1 - min(tokens[-1], 1)) if len(tokens) > 2 else tokens for tokens in found]


class Hanging(Plain):
    """Never comes back from a long prompt."""

    def decode(self, request, *, seed):
        if len(request.prompt) > 2:
            time.sleep(3_600)
        return super().decode(request, seed=seed)


class Dying(Plain):
    """Ends the process on a long prompt."""

    def decode(self, request, *, seed):
        if len(request.prompt) > 2:
            os._exit(7)
        return super().decode(request, seed=seed)


def make(config):
    """A factory of plain functions, which looks at the models at once."""
    model = config.target

    def decode(request, *, seed):
        return greedy(model, request)

    return decode


def certain(tokens):
    return (0.0, 1.0, 0.0) if sum(tokens) % 2 else (0.0, 0.0, 1.0)


def decode(request, *, seed):
    """A decoder with a model of its own."""
    return greedy(certain, request)


decode.target_law = certain


class Own:
    """The same as an object."""

    target_law = staticmethod(certain)
    decode = staticmethod(decode)


OWN = Own()


def modelless(request, *, seed):
    """Nobody can know what is right for it."""
    return [[0]]


class Nothing:
    """No decoder."""

    def __init__(self, config):
        self.target = config.target


LYING = Implementation("lying", "1", {"decoder": Plain}, {"decoder": frozenset({"fork"})})
