"""Which of several random numbers is the smallest or the largest: a race of exponential clocks.

Every uniform u has a clock e = -log u (or -log(1 - u)). Noise that samplers use is a function of it with
constants of its own: e / p, p / e, logits - log e, u ** (1 / w). The last steps that all have in common
are dropped; if what is left orders the numbers as e_i / r_i does, a race with the rates r_i decides
(`tokenlaw.stats.enumeration.races`).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.monotone import EXP, LOG, Affine, Step, Steps, exponential, logarithm, ratio
from tokenlaw.stats.enumeration.races import Races
from tokenlaw.stats.enumeration.tape import Tape
from tokenlaw.stats.enumeration.tournaments import Runner, rings_before
from tokenlaw.stats.enumeration.uniforms import Uniform

MIRROR = Affine(-1, 1)
_runners: "WeakKeyDictionary[Uniform, Runner]" = WeakKeyDictionary()
_races: "WeakKeyDictionary[Tape, tuple[int, Races]]" = WeakKeyDictionary()


def races_of(tape: Tape) -> Races:
    """The clocks of the run that a tape is in."""
    run, races = _races.get(tape, (0, None))
    if races is None or run != tape.run:
        races = Races(tape)
        _races[tape] = tape.run, races
    return races


@dataclass(frozen=True, slots=True)
class Race:
    """Clocks and their rates; the first to ring is the number that is looked for.

    Attributes
    ----------
    uniforms, rates : one for each number.
    clock : what the clocks are of their uniforms.
    """

    uniforms: Sequence[Uniform]
    rates: Sequence[Weight]
    clock: str

    @property
    def is_free(self) -> bool:
        """Whether nothing is known of the clocks but what came of races."""
        return all(uniform.clock == self.clock or uniform.is_new for uniform in self.uniforms)

    def order(self, count: int, source: str) -> list[int]:
        """Which numbers come first, second, ... up to a count."""
        first = self.uniforms[0]
        for uniform in self.uniforms:
            first.tape.check_run(uniform.run)
            uniform.clock = self.clock
        rates: dict[Hashable, Weight] = dict(zip(self.uniforms, self.rates, strict=True))
        names: dict[Hashable, object] = {uniform: place for place, uniform in enumerate(self.uniforms)}
        found = races_of(first.tape).order(rates, count, source, first.row, names)
        return [self.uniforms.index(uniform) for uniform in found]


def race(numbers: Sequence[tuple[Uniform, Steps]], *, largest: bool) -> Race | None:
    """A race for the largest (or smallest) of several random numbers; None if it isn't decided by one.

    It may still be that the clocks aren't free for it.

    Examples
    --------
    >>> noise = [Uniform(Tape()), Uniform(Tape())]
    >>> numbers = list(zip(noise, [(LOG, Affine(-4, 0)), (LOG, Affine(-2, 0))]))
    >>> [float(rate) for rate in race(numbers, largest=False).rates]
    [0.25, 0.5]
    """
    uniforms = [uniform for uniform, _ in numbers]
    steps, largest = _without_common_end([steps for _, steps in numbers], largest)
    steps, largest = _without_common_end(_alike(steps), largest)
    mirrored = not largest if not steps[0] else steps[0][0] == MIRROR
    if any(steps):
        if any((own[:1] == (MIRROR,)) != mirrored for own in steps):
            return None
        rates = _rates([own[mirrored:] for own in steps], largest)
    else:
        rates = [1] * len(steps)
    clock = "-log(1 - u)" if mirrored else "-log(u)"
    alone = len(set(uniforms)) == len(uniforms) and len({uniform.row for uniform in uniforms}) == 1
    return Race(uniforms, rates, clock) if rates is not None and alone else None


def _alike(functions: list[Steps]) -> list[Steps]:
    """Beside powers of uniforms, uniforms themselves as powers too: u = exp(log u)."""
    plain = [own in ((), (MIRROR,)) for own in functions]
    if all(plain) or not all(
        is_plain or own[-1] is EXP for own, is_plain in zip(functions, plain, strict=True)
    ):
        return functions
    return [
        (*own, LOG, Affine(1, 0), EXP) if is_plain else own
        for own, is_plain in zip(functions, plain, strict=True)
    ]


def compare(first: tuple[Uniform, Steps], second: tuple[Uniform, Steps]) -> bool | None:
    """Whether one random number is below another one; None if no race decides that."""
    for largest in (False, True):
        found = race([first, second], largest=largest)
        before = None if found is None else _before(found)
        if before is not None:
            return before != largest
    return None


def _before(pair: Race) -> bool | None:
    """Whether the first of two clocks rings before the second; None if other things are known of them."""
    one, other = pair.uniforms
    compared = f"compared {pair.clock}"
    if all(uniform.clock == compared or uniform.is_new for uniform in pair.uniforms):
        one.clock = other.clock = compared
        one.tape.check_run(one.run)
        runners = _runners.setdefault(one, Runner()), _runners.setdefault(other, Runner())
        return rings_before(one.tape, *runners, (pair.rates[0], pair.rates[1]), one.row)
    return pair.order(1, "comparing two random numbers")[0] == 0 if pair.is_free else None


def _without_common_end(functions: list[Steps], largest: bool) -> tuple[list[Steps], bool]:
    while all(functions) and len({own[-1] for own in functions}) == 1:
        largest ^= not functions[0][-1].rising
        functions = [own[:-1] for own in functions]
    return functions, largest


@dataclass(frozen=True, slots=True)
class _Form:
    """scale * f + shift of a clock e, where f is e, log e or e ** power."""

    kind: str
    scale: Weight = 1
    shift: Weight = 0
    power: Weight = 1

    def then(self, step: Step) -> "_Form | None":
        """The form after one more step, None if it leaves those that are known."""
        if isinstance(step, Affine):
            shift = step.scale * self.shift + step.shift
            return _Form(self.kind, step.scale * self.scale, shift, self.power)
        if step is EXP and self.kind == "log":
            scale = exponential(self.shift) if self.shift else 1
            return _Form("power", scale, power=self.scale) if self.scale != 1 else _Form("e", scale)
        if step is LOG and self.kind != "log" and self.scale > 0 and self.shift == 0:
            return _Form("log", self.power, logarithm(self.scale))
        return None

    @property
    def rising(self) -> bool:
        """Whether it grows with e."""
        return (self.scale > 0) == (self.power > 0)


def _form(steps: Steps) -> _Form | None:
    """What a function of a uniform is of its clock."""
    if steps[:1] != (LOG,):
        return None
    form: _Form | None = _Form("e", -1)
    for step in steps[1:]:
        form = None if form is None else form.then(step)
    return form


def _rates(functions: Sequence[Steps], largest: bool) -> list[Weight] | None:
    """Rates r_i such that the number looked for has the smallest e_i / r_i; None if there are none."""
    forms = [form for form in map(_form, functions) if form is not None and form.rising != largest]
    if len(forms) < len(functions):
        return None
    first = forms[0]
    if first.kind == "log" and len({(form.kind, form.scale) for form in forms}) == 1:
        exponents = [-form.shift / first.scale for form in forms]
        return [exponential(exponent - max(exponents)) for exponent in exponents]
    if len({(form.kind, form.shift, form.power) for form in forms}) == 1:
        return [_rate(form.scale if form.scale > 0 else -form.scale, form.power) for form in forms]
    return None


def _rate(scale: Weight, power: Weight) -> Weight:
    """The rate r for which scale * e ** power is a function of e / r."""
    if power == -1:
        return scale
    return ratio(1, scale) if power == 1 else float(scale ** (-1 / power))
