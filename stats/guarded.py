"""A verifier whose exceptions can be told from ours, and whose rows are counted."""

import traceback
from collections.abc import Callable
from typing import Any

from torch import Tensor

from tokenlaw.spec.generation_contracts import TreeBatch, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters


class CrashError(Exception):
    """The implementation raised an exception; the message is its traceback."""


class Guarded:
    """Passes calls on to a verifier.

    Attributes
    ----------
    rows : how many rows it was given in all.
    answered : for how many of them something came back.
    """

    def __init__(self, verifier: Any, alive: Callable[[], None] = lambda: None) -> None:
        self._verifier, self._alive = verifier, alive
        self._most_rows = getattr(verifier, "most_rows", None)
        self.rows = self.answered = 0

    def at_most(self, rows: int) -> int:
        """So many rows for a call, or what the verifier takes at most."""
        return rows if self._most_rows is None else min(rows, self._most_rows)

    def verify(self, batch: VerifyBatch, **keywords: Any) -> Any:
        """As `tokenlaw.spec.generation_contracts.Verifier.verify`; raises `CrashError`."""
        return self._asked(len(batch.num_draft_tokens), "verify", batch, **keywords)

    def verify_tree(self, batch: TreeBatch, *, seed: int) -> Any:
        """As the capability ``trees``; raises `CrashError`."""
        return self._asked(len(batch.tokens), "verify_tree", batch, seed=seed)

    def draft(self, logits: Any, params: RowParameters, *, position: int, seed: int) -> Any:
        """As the capability ``draft``; raises `CrashError`."""
        return self._call("draft", logits, params, position=position, seed=seed)

    def _asked(self, rows: int, method: str, *arguments: Any, **keywords: Any) -> Any:
        """One call for so many rows."""
        self.rows += rows
        found = self._call(method, *arguments, **keywords)
        self.answered += rows
        self._alive()
        # Whoever has one buffer for all answers writes the next one into it.
        return found.clone() if isinstance(found, Tensor) else found

    def _call(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        try:
            return getattr(self._verifier, method)(*arguments, **keywords)
        except (Exception, SystemExit) as error:
            raise CrashError(f"{method} raised an exception.\n{traceback.format_exc()}") from error
