"""Whatever somebody offers as a decoder, made into a `tokenlaw.spec.decoder_contract.Decoder`."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tokenlaw.spec.calling import accepts
from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.decoder_contract import Decoder, DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.session_models import Hashed, uniform_model

_SUM_TOLERANCE = 1e-3  # of an engine's own law, which may be of low precision


class FunctionDecoder:
    """A decoder made of a plain function ``decode(request, *, seed)``.

    An attribute ``target_law`` of the function shows the capability ``own-models``.

    Parameters
    ----------
    function : as `Decoder.decode`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.decode = function
        if callable(law := getattr(function, "target_law", None)):
            self.target_law = law
        # What it raises is the fault of whoever wrote the function.
        self.__module__ = getattr(function, "__module__", __name__)


def is_decode_function(found: Any) -> bool:
    """Whether it can be called as ``found(request, seed=...)``, and says so by the names of its parameters.

    >>> is_decode_function(lambda request, *, seed: []), is_decode_function(lambda config: config)
    (True, False)
    """
    if isinstance(found, type) or not callable(found):
        return False
    try:
        signature = inspect.signature(found)
        signature.bind(None, seed=0)
    except (TypeError, ValueError):  # it takes something else; a builtin without a signature
        return False
    names = list(signature.parameters)
    return names[0] == "request" and "seed" in names


def as_decoder(offered: Any, source: str) -> Decoder:
    """An object with a method ``decode`` as it is, a plain function wrapped; errors begin with ``source``.

    >>> as_decoder(lambda request, *, seed: [[0]], "mine").decode(None, seed=0)
    [[0]]

    Raises
    ------
    ContractError
        It is neither.
    """
    if is_decode_function(offered):
        return FunctionDecoder(offered)
    if not callable(getattr(offered, "decode", None)):
        kind = type(offered).__name__
        raise ContractError(
            f"{source}: the decoder factory returned {kind}, which lacks decode; return an object with "
            "decode(request, *, seed), or such a function"
        )
    decoder: Decoder = offered
    return decoder


def decoder_factory(offered: Any) -> Callable[..., Any] | None:
    """A factory of decoders for a decoder itself (which must have models of its own); else None.

    >>> decoder_factory(lambda config: config) is None
    True

    Raises
    ------
    ContractError
        It is a decoder that doesn't tell the law of its target.
    """
    is_object = not isinstance(offered, type) and callable(getattr(offered, "decode", None))
    if not is_object and not is_decode_function(offered):
        return None
    decoder = as_decoder(offered, "it")
    if not callable(getattr(decoder, "target_law", None)):
        raise ContractError(
            "a decoder that is no factory can't be given models: offer a factory, DecoderConfig -> decoder, "
            "or tell the law of its own target with target_law(tokens)"
        )
    return lambda *config: decoder


def built_decoder(factory: Callable[..., Any], source: str, config: DecoderConfig) -> Decoder:
    """What a factory builds from a configuration, which one without arguments doesn't get; as `as_decoder`.

    >>> built_decoder(lambda: lambda request, *, seed: [[0]], "mine", default_config()).decode(None, seed=0)
    [[0]]
    """
    return as_decoder(factory(config) if takes_config(factory) else factory(), source)


def takes_config(factory: Callable[..., Any]) -> bool:
    """Whether a factory can be called with a configuration; one without arguments can't.

    >>> takes_config(lambda: 0), takes_config(lambda config: 0)
    (False, True)
    """
    return accepts(factory, None)


def default_config() -> DecoderConfig:
    """A configuration to build a decoder with in order to look at it.

    >>> default_config().vocabulary_size
    3
    """
    target, draft = Hashed(3, seed=0), Hashed(3, seed=1)
    return DecoderConfig(target.model(), draft.model(), vocabulary_size=3)


def target_of(decoder: Any, config: DecoderConfig, capabilities: frozenset[str]) -> LanguageModel[float]:
    """The language model whose law the decoder must keep: its own, if it has one, else the configuration's.

    The law of an engine's own target is divided by its sum.

    Raises
    ------
    ContractError
        (The model, when called.) What ``target_law`` gives isn't a law.
    """
    if "own-models" not in capabilities:
        return config.target

    def law(tokens: Tokens) -> Sequence[float]:
        numbers = [float(number) for number in decoder.target_law(tokens)]
        mass = sum(numbers)
        if not abs(mass - 1) <= _SUM_TOLERANCE or min(numbers) < 0:
            raise ContractError(f"target_law({tokens}) isn't a law: its numbers sum to {mass}")
        return [number / mass for number in numbers]

    return law


def vocabulary_of(decoder: Any, capabilities: frozenset[str], otherwise: int) -> int:
    """Tokens of the decoder's own models, or ``otherwise``."""
    if "own-models" not in capabilities:
        return otherwise
    return len(target_of(decoder, _unused(otherwise), capabilities)((0,)))


def _unused(vocabulary_size: int) -> DecoderConfig:
    model = uniform_model(vocabulary_size)
    return DecoderConfig(model, model, vocabulary_size)
