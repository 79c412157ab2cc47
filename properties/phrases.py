"""The deliberate phrases, because random operations find the rare faults slowly or never.

Each one is a short run of operations that a known fault of real engines needs.
"""

from tokenlaw.properties import host_phrases, pressure_phrases, rewinding_phrases, sharing_phrases
from tokenlaw.properties.scene import Phrase

PHRASES: tuple[Phrase, ...] = (
    *sharing_phrases.PHRASES,
    *rewinding_phrases.PHRASES,
    *pressure_phrases.PHRASES,
    *host_phrases.PHRASES,
)
"""Every deliberate rule of the strategy."""
