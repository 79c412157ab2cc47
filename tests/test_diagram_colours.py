"""Colours of diagrams: texts can be read, and everybody can tell lines apart."""

from itertools import combinations

import numpy as np
import pytest

from tokenlaw.diagram_shapes import COPIED, DARK, LIGHT, SEQUENCES, WRONG, colour_of

LUMINANCE = (0.2126, 0.7152, 0.0722)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip(LUMINANCE, linear, strict=True))


SEEN_BY: dict[str, list[list[float]]] = {
    "most people": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopes": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopes": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopes": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""What linear red, green and blue look like (Machado, Oliveira and Fernandes 2009, severity 1)."""


def lab(colour: str, seen: list[list[float]]) -> np.ndarray:
    """CIE L*a*b* of a colour, as somebody sees it."""
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    white = to_xyz @ np.ones(3)
    x, y, z = np.cbrt((to_xyz @ np.clip(np.array(seen) @ linear, 0, 1) / white).clip(0.009))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", SEEN_BY.values(), ids=SEEN_BY)
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_can_be_told_apart_by_everybody(colours: dict[str, str], seen: list[list[float]]) -> None:
    """A distance of 2.3 can just be seen."""
    for one, other in combinations((*SEQUENCES, WRONG, COPIED), 2):
        assert np.linalg.norm(lab(colours[one], seen) - lab(colours[other], seen)) > 7, (one, other)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_can_be_read(colours: dict[str, str]) -> None:
    """A contrast of 4.5, which WCAG 2.1 asks for in small text, on every ground that it stands on."""
    grounds = {
        "ink": ("paper", "held", "shared", "cached", "written", "wrong-fill"),
        "faint": ("paper", "held", "shared", "cached", "written"),
        **dict.fromkeys(("wrong", "copied", *map(colour_of, range(5))), ("paper",)),
    }
    for text, behind in grounds.items():
        for ground in behind:
            light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
