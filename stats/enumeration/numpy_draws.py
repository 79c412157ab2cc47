"""What numpy's generators draw, with numpy's own arguments, decided by a tape.

Arguments are checked by the real method first: it draws from a generator that nobody else has, raises what it
raises, and its result shows the shape and the type that the decided one must have.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.drawing import Drawer
from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.images import operand
from tokenlaw.stats.enumeration.lazy_arrays import lazy_array

Size = int | Sequence[int] | None


class Distributions:
    """Methods of a generator, by the names that both kinds of generators of numpy share.

    Parameters
    ----------
    draw : decides, and names the module for people.
    scratch : a real generator, whose numbers are thrown away.
    """

    def __init__(self, draw: Drawer, scratch: Any) -> None:
        self.draw, self.scratch = draw, scratch

    def random(self, size: Size = None, dtype: object = None, out: object = None) -> Any:
        """Uniform numbers."""
        if out is not None:
            self.draw.refuse("random(out=...)", "writes random numbers into an array of floats")
        if size is None:
            return self.draw.uniform("random")
        return self._filled(self._real("random", size), lambda: self.draw.uniform("random"))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None) -> Any:
        """Uniform numbers between two others."""
        like = self._real("uniform", low, high, size)
        first, last = (np.asarray(end) if np.ndim(end) else end for end in (low, high))
        return first + (last - first) * self._filled(like, lambda: self.draw.uniform("uniform"))

    def standard_exponential(
        self, size: Size = None, dtype: object = None, method: str = "zig", out: object = None
    ) -> Any:
        """Exponential noise."""
        if out is not None:
            self.draw.refuse("standard_exponential(out=...)", "writes random numbers into an array of floats")
        like = self._real("standard_exponential", size)
        return self._filled(like, lambda: self.draw.exponential("standard_exponential"))

    def exponential(self, scale: Any = 1.0, size: Size = None) -> Any:
        """Exponential noise, scaled."""
        like = self._real("exponential", scale, size)
        noise = self._filled(like, lambda: self.draw.exponential("exponential"))
        return noise if np.ndim(scale) == 0 and scale == 1 else scale * noise

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Gumbel noise, scaled and shifted."""
        like = self._real("gumbel", loc, scale, size)
        noise = self._filled(like, lambda: self.draw.gumbel("gumbel"))
        return noise if np.ndim(loc) + np.ndim(scale) == 0 and (loc, scale) == (0, 1) else loc + scale * noise

    def integers(self, low: Any, high: Any = None, size: Size = None, *arguments: Any, **options: Any) -> Any:
        """Integers, all equally likely."""
        name = "integers" if hasattr(self.scratch, "integers") else "randint"
        like = self._real(name, low, high, size, *arguments, **options)
        endpoint = options.get("endpoint", arguments[1] if len(arguments) > 1 else False)
        first, end = (0, low) if high is None else (low, high)
        firsts, ends = np.broadcast_to(first, np.shape(like)), np.broadcast_to(end, np.shape(like))
        return self._whole(
            like,
            lambda place: (
                int(firsts[place])
                + self.draw.below(int(ends[place]) - int(firsts[place]) + bool(endpoint), name)
            ),
        )

    def choice(self, a: Any, size: Size = None, replace: bool = True, p: Any = None, **options: Any) -> Any:
        """Some of several values."""
        axis, shuffle = options.get("axis", 0), options.get("shuffle", True)
        like = self._real(
            "choice", a, size, replace, p if p is None else np.asarray(p, dtype=float), **options
        )
        count = int(a) if np.ndim(a) == 0 else np.shape(a)[axis]
        weights = [Fraction(1, count)] * count if p is None else plain_weights(p)
        number = 1 if size is None else int(np.prod(size))
        if replace or number == 1:
            found = [self.draw.index(weights, "choice") for _ in range(number)]
        elif shuffle:
            found = self.draw.without_replacement(weights, number, "choice")
        else:
            self.draw.refuse("choice(shuffle=False)", "leaves the order of what it draws open")
        places: Any = found[0] if size is None else np.array(found, dtype=np.int64).reshape(size)
        if np.ndim(a) == 0:
            return type(like)(places) if size is None else places.astype(like.dtype)
        return np.take(np.asarray(a), places, axis=axis)

    def multinomial(self, n: Any, pvals: Any, size: Size = None) -> Any:
        """How often each of several outcomes comes."""
        like = self._real("multinomial", n, np.asarray(pvals, dtype=float), size)
        weights = np.broadcast_to(np.asarray(pvals, dtype=object), like.shape)
        counts = np.broadcast_to(n, like.shape[:-1])
        found = np.empty_like(like)
        for place in np.ndindex(like.shape[:-1]):
            row = plain_weights(weights[place])
            row[-1] = max(1 - sum(row[:-1]), 0)
            found[place] = self.draw.multinomial(int(counts[place]), row, "multinomial")
        return found

    def binomial(self, n: Any, p: Any, size: Size = None) -> Any:
        """Numbers of successes."""
        like = self._real("binomial", n, np.asarray(p, dtype=float), size)
        counts = np.broadcast_to(n, np.shape(like))
        shares = np.broadcast_to(np.asarray(p, dtype=object), np.shape(like))
        return self._whole(
            like,
            lambda place: self.draw.binomial(
                int(counts[place]), plain_weights([shares[place]])[0], "binomial"
            ),
        )

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Permute in place."""
        order = self._order(len(x) if axis == 0 else np.shape(x)[axis], "shuffle")
        if isinstance(x, np.ndarray):
            x[...] = np.take(x, order, axis=axis)
        else:
            x[:] = [x[place] for place in order]

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """A permutation, or permuted values."""
        values = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
        return np.take(values, self._order(values.shape[axis], "permutation"), axis=axis)

    @as_the_real_one
    def _real(self, method: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self.scratch, method)(*arguments, **options)

    def _order(self, count: int, function: str) -> list[int]:
        order = list(range(count))
        self.draw.shuffle(order, function)
        return order

    def _filled(self, like: Any, one: Callable[[], Any]) -> Any:
        if not isinstance(like, np.ndarray):
            return one()
        return lazy_array([one() for _ in range(like.size)], like.shape)

    def _whole(self, like: Any, one: Callable[[tuple[int, ...]], int]) -> Any:
        if not isinstance(like, np.ndarray):
            return type(like)(one(()))
        found = np.empty_like(like)
        for place in np.ndindex(like.shape):
            found[place] = one(place)
        return found


def plain_weights(weights: Any) -> list[Weight]:
    """Weights as plain numbers, integers as fractions."""
    found = []
    for weight in weights:
        number = operand(weight)
        if not isinstance(number, int | float | Fraction):
            raise TypeError(f"a {type(weight).__name__} is no probability")
        found.append(Fraction(number) if isinstance(number, int) else number)
    return found
