"""How many cache slots are reserved and never used: fixed-size blocks against one piece per request.

The mix
    30 % chat requests and 70 % single instructions, independent. Prompt and answer lengths are log-normal
    with the means that Kwon et al. 2023 (arXiv:2309.06180, section 6.1) report for ShareGPT (161 and 338
    tokens) and for Alpaca (19 and 58). That paper gives means only; the spread, a standard deviation of the
    logarithm of 1 for chat and 0.8 for instructions, is our assumption. A request ends at 2048 tokens.

The policies, looked at when a request has all its tokens. This favours the contiguous ones, which reserve
all their slots at the start.
    paged: blocks of 16 tokens, as many as the tokens need.
    contiguous, size classes: the length is known in advance and rounded up to one of two sizes per
    doubling, 32, 48, 64, 96, 128, ... 2048. Far better than what can be done while lengths aren't known.
    contiguous, powers of two: known in advance as well, rounded up to 32, 64, 128, ... 2048.
    contiguous, maximum: 2048 tokens for every request, since its length isn't known.

Waste is the share of allocated slots without a token. Run it: ``python examples/waste.py``, and with
``--plot waste.svg`` for a picture.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenlaw.errors import BadUse
from tokenlaw.plots import FOUND, OTHER, new_figure, require_plottable, styled, write_plot
from tokenlaw.spec.cache import contiguous_waste, waste

MAX_LENGTH = 2048
BLOCK_SIZE = 16
CHAT_SHARE = 0.3
POWERS = tuple(32 * 2**step for step in range(7))
CLASSES = tuple(sorted(POWERS + tuple(48 * 2**step for step in range(6))))

Lengths = NDArray[np.int64]


def log_normal(generator: np.random.Generator, mean: float, spread: float, count: int) -> Lengths:
    """Whole lengths, at least 1, with about this mean; ``spread`` is the deviation of the logarithm."""
    drawn = generator.lognormal(np.log(mean) - spread**2 / 2, spread, count)
    return np.maximum(1, np.rint(drawn)).astype(np.int64)


def request_lengths(seed: int, count: int) -> Lengths:
    """Final lengths, prompt and answer, of ``count`` requests of the mix."""
    generator = np.random.default_rng(seed)
    chat = log_normal(generator, 161, 1.0, count) + log_normal(generator, 338, 1.0, count)
    instruction = log_normal(generator, 19, 0.8, count) + log_normal(generator, 58, 0.8, count)
    mixed = np.where(generator.random(count) < CHAT_SHARE, chat, instruction)
    return np.minimum(mixed, MAX_LENGTH)


def reserved(length: int, sizes: tuple[int, ...]) -> int:
    """The smallest of ``sizes`` that holds the length."""
    return next(size for size in sizes if size >= length)


def wasted_share(lengths: list[int], unused: list[int]) -> float:
    """Unused slots as a share of the allocated ones."""
    return sum(unused) / (sum(lengths) + sum(unused))


def shares(seed: int = 0, count: int = 20_000) -> dict[str, float]:
    """Wasted share of each policy over ``count`` requests.

    >>> for policy, share in shares().items():
    ...     print(f"{policy}: {share:.0%}")
    paged, blocks of 16: 4%
    contiguous, size classes: 16%
    contiguous, powers of two: 29%
    contiguous, maximum: 90%
    """
    lengths = request_lengths(seed, count).tolist()
    unused = {
        "paged, blocks of 16": [waste(length, BLOCK_SIZE) for length in lengths],
        "contiguous, size classes": [contiguous_waste(n, reserved(n, CLASSES)) for n in lengths],
        "contiguous, powers of two": [contiguous_waste(n, reserved(n, POWERS)) for n in lengths],
        "contiguous, maximum": [contiguous_waste(n, MAX_LENGTH) for n in lengths],
    }
    return {policy: wasted_share(lengths, slots) for policy, slots in unused.items()}


def plot(path: Path) -> None:
    """Draw the table: a bar for each policy, paged in another colour than contiguous."""
    found = shares()
    figure = new_figure(7, 2.8)
    axes = figure.add_subplot()
    names, values = list(found)[::-1], [100 * share for share in found.values()][::-1]
    colours = [FOUND if name.startswith("paged") else OTHER for name in names]
    axes.bar_label(axes.barh(names, values, color=colours), fmt="%.1f %%", padding=3, fontsize=9)
    title = "Cache slots that are allocated and hold no token"
    styled(axes, title, "share of allocated slots in percent", "")
    axes.set_xlim(0, 100)
    write_plot(figure, path, title)


def main() -> int:
    """Print the table, and draw it if asked to; the exit status is 3 if that can't be done."""
    parser = argparse.ArgumentParser(description="Waste of paged against contiguous allocation.")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a name that ends in .svg or .png")
    picture: Path | None = parser.parse_args().plot
    try:
        require_plottable(picture)
        if picture is not None:
            plot(picture)
    except BadUse as error:
        print(error, file=sys.stderr)
        return 3
    lengths = request_lengths(seed=0, count=20_000)
    print(f"{len(lengths)} requests, {lengths.mean():.0f} tokens on average, median {np.median(lengths):.0f}")
    for policy, share in shares().items():
        print(f"{policy:<28}{share:7.1%} of allocated slots wasted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
