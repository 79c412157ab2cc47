"""Is this decoding engine exact? An executable specification and the evidence that decides.

Public names are loaded on first use, so that importing the package (and starting pytest with its plugin)
needs neither torch nor hypothesis.
"""

__version__ = "0.1.0"
