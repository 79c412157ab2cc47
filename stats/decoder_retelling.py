"""One path of a decoder again, to tell what it did in each of its steps."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenlaw.spec.laws import Tokens
from tokenlaw.stats.decoder_programs import DecoderProgram, Outcome
from tokenlaw.stats.enumeration.choices import Path
from tokenlaw.stats.enumeration.narrative import Line, narrate
from tokenlaw.stats.enumeration.retelling import retell


def retold(program: DecoderProgram, line: Line, outcome: Outcome) -> list[str]:
    """What happened on a path, a phrase for each step where the decoder has steps, else for each choice.

    Parameters
    ----------
    program : whose path it is.
    line : the choices of the path.
    outcome : where it led to.
    """
    path = Path(list(line))
    watch = _Watch(path)
    error = retell(program.watched(watch), path)
    watch.leave()
    if error is not None:  # it is told without its steps and places
        watch.steps.clear()
    if not watch.steps or watch.steps[-1].end != len(line):
        return narrate(line, str(outcome))
    told, begin = [], 0
    for number, step in enumerate(watch.steps, 1):
        told.append(f"step {number}: {_step(line[begin : step.end], step)}")
        begin = step.end
    return [*told, f"in all: {outcome}"]


@dataclass(frozen=True)
class _Step:
    """How many choices there were when it ended, and what each sample that grew was given in it."""

    end: int
    grown: tuple[Tokens, ...]


@dataclass
class _Watch:
    """Takes down the steps of a decoder that is run once more: it stands before its methods."""

    path: Path
    steps: list[_Step] = field(default_factory=list)
    _handles: list[Hashable] = field(default_factory=list)
    _replaced: list[tuple[Any, str, Any]] = field(default_factory=list)

    def over(self, decoder: Any) -> Any:
        """The decoder, watched where it has steps."""
        if not all(hasattr(decoder, name) for name in ("submit", "step", "generated")):
            return decoder
        step = decoder.step

        def watched() -> None:
            before = self._tokens(decoder)
            step()
            pairs = zip(before, self._tokens(decoder), strict=True)
            grown = tuple(new[len(old) :] for old, new in pairs if new != old)
            self.steps.append(_Step(self.path.position, grown))

        self._replace(decoder, "step", watched)
        for name in ("submit", "fork"):
            if hasattr(decoder, name):
                self._replace(decoder, name, self._noting(getattr(decoder, name)))
        if hasattr(decoder, "abort"):
            self._replace(decoder, "abort", self._forgetting(decoder.abort))
        return decoder

    def leave(self) -> None:
        """Give the decoder its methods back: its factory may build the same one again."""
        for decoder, name, own in reversed(self._replaced):
            if own is None:
                delattr(decoder, name)
            else:
                setattr(decoder, name, own)

    def _replace(self, decoder: Any, name: str, method: Any) -> None:
        self._replaced.append((decoder, name, vars(decoder).get(name)))
        setattr(decoder, name, method)

    def _noting(self, method: Any) -> Any:
        def noting(*arguments: Any, **keywords: Any) -> Hashable:
            handle: Hashable = method(*arguments, **keywords)
            self._handles.append(handle)
            return handle

        return noting

    def _forgetting(self, method: Any) -> Any:
        def forgetting(handle: Hashable) -> None:
            self._handles.remove(handle)
            method(handle)

        return forgetting

    def _tokens(self, decoder: Any) -> list[Tokens]:
        """Tokens of every sample so far."""
        return [tuple(sample) for handle in self._handles for sample in decoder.generated(handle)]


def _step(line: Line, step: _Step) -> str:
    """Choices and tokens of one step: as a speculative step, if it is one of one sample beyond doubt."""
    if len(step.grown) == 1:
        return ", ".join(narrate(line, step.grown[0]))
    return ", ".join(narrate(line, _listed(step.grown)))


def _listed(grown: Sequence[Tokens]) -> str:
    return " and ".join(str(list(tokens)) for tokens in grown) or "nothing grew"
