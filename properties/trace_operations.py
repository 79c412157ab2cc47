"""The operations of traces, one small struct each; `tokenlaw.properties.trace` says what a trace is."""

import msgspec

Tokens = tuple[int, ...]


class New(msgspec.Struct, frozen=True, tag_field="op", tag="new", forbid_unknown_fields=True):
    """Admit a sequence with these prompt tokens, write it, commit it."""

    tokens: Tokens
    namespace: str = ""


class Append(msgspec.Struct, frozen=True, tag_field="op", tag="append", forbid_unknown_fields=True):
    """Append committed tokens to a sequence."""

    sequence: int
    tokens: Tokens


class Fork(msgspec.Struct, frozen=True, tag_field="op", tag="fork", forbid_unknown_fields=True):
    """Fork a sequence; the child becomes the last live sequence."""

    sequence: int


class Speculate(msgspec.Struct, frozen=True, tag_field="op", tag="speculate", forbid_unknown_fields=True):
    """Schedule and write draft tokens, keep the first ``accepted`` (at most all of them)."""

    sequence: int
    drafts: Tokens
    accepted: int


class Rollback(msgspec.Struct, frozen=True, tag_field="op", tag="rollback", forbid_unknown_fields=True):
    """Forget the last ``count`` tokens; more than the length, or a negative count, must raise."""

    sequence: int
    count: int


class Free(msgspec.Struct, frozen=True, tag_field="op", tag="free", forbid_unknown_fields=True):
    """Release a sequence."""

    sequence: int


class FreeAgain(msgspec.Struct, frozen=True, tag_field="op", tag="free_again", forbid_unknown_fields=True):
    """Release the sequence that was released last once more: must raise or do nothing."""


class Abort(msgspec.Struct, frozen=True, tag_field="op", tag="abort", forbid_unknown_fields=True):
    """Schedule tokens, then release the sequence before anything is written.

    With ``sequence`` None a new sequence is admitted for it; else the tokens are appended to that one.
    """

    tokens: Tokens
    sequence: int | None = None
    namespace: str = ""


class Chunked(msgspec.Struct, frozen=True, tag_field="op", tag="chunked", forbid_unknown_fields=True):
    """Schedule tokens at once and write them in two chunks, as a chunked prefill does: write and commit the
    first ``written`` of them, then write and commit the others, or, if ``aborted``, release the sequence.

    With ``sequence`` None a new sequence is admitted for it; else the tokens are appended to that one.
    """

    tokens: Tokens
    written: int
    sequence: int | None = None
    namespace: str = ""
    aborted: bool = False


class Evict(msgspec.Struct, frozen=True, tag_field="op", tag="evict", forbid_unknown_fields=True):
    """Drop up to ``count`` cached blocks that no sequence holds."""

    count: int


class Reset(msgspec.Struct, frozen=True, tag_field="op", tag="reset", forbid_unknown_fields=True):
    """Make every cached block unreachable."""


class SwapOut(msgspec.Struct, frozen=True, tag_field="op", tag="swap_out", forbid_unknown_fields=True):
    """Move a sequence to the host tier; it stays live but can't be used until it is back."""

    sequence: int


class SwapIn(msgspec.Struct, frozen=True, tag_field="op", tag="swap_in", forbid_unknown_fields=True):
    """Bring a swapped-out sequence back; the index counts the swapped-out sequences only."""

    sequence: int


class FreeSwapped(
    msgspec.Struct, frozen=True, tag_field="op", tag="free_swapped", forbid_unknown_fields=True
):
    """Release a sequence while it is swapped out; the index counts the swapped-out sequences only."""

    sequence: int


class Reorder(msgspec.Struct, frozen=True, tag_field="op", tag="reorder", forbid_unknown_fields=True):
    """Beam search: the live sequences continue the content of ``parents`` (indices modulo their number)."""

    parents: tuple[int, ...]


class Weights(msgspec.Struct, frozen=True, tag_field="op", tag="weights", forbid_unknown_fields=True):
    """The weights changed: a new epoch."""


class LateWrite(msgspec.Struct, frozen=True, tag_field="op", tag="late_write", forbid_unknown_fields=True):
    """A step in flight lands late: append ``tokens``, release that sequence, admit ``prompt`` and write
    it, and only then write the appended tokens of the released sequence.
    """

    sequence: int
    tokens: Tokens
    prompt: Tokens


class Batch(msgspec.Struct, frozen=True, tag_field="op", tag="batch", forbid_unknown_fields=True):
    """One step of a batch: append a token to each of these live sequences (indices modulo their number,
    repeats dropped; ``tokens`` are dealt round), and only then apply the copies of all, write and commit.

    ``released``, if any, is freed after the first append, or after its own if it is one of the batch.
    """

    sequences: tuple[int, ...]
    tokens: Tokens
    released: int | None = None


class SpeculateBatch(
    msgspec.Struct, frozen=True, tag_field="op", tag="speculate_batch", forbid_unknown_fields=True
):
    """One step of a batch with drafts: schedule the first ``lengths[i]`` of ``drafts`` (one at least) for the
    live sequence ``sequences[i]`` (indices modulo their number, repeats dropped; lengths and kept are dealt
    round), apply the copies of all and write; then keep the first ``kept[i]`` of each, or release the
    sequence if that is negative.
    """

    sequences: tuple[int, ...]
    drafts: Tokens
    lengths: tuple[int, ...]
    kept: tuple[int, ...]


class Overflow(msgspec.Struct, frozen=True, tag_field="op", tag="overflow", forbid_unknown_fields=True):
    """Append ``count`` tokens beyond the room that was reserved, without reserving: must raise."""

    sequence: int
    count: int


class AppendLayer(
    msgspec.Struct, frozen=True, tag_field="op", tag="append_layer", forbid_unknown_fields=True
):
    """Append tokens to one layer (modulo the number of layers) of a sequence; the others stay as they are."""

    sequence: int
    layer: int
    tokens: Tokens


class Attend(msgspec.Struct, frozen=True, tag_field="op", tag="attend", forbid_unknown_fields=True):
    """Attend with a batch of these live sequences (indices modulo their number, repeats dropped)."""

    sequences: tuple[int, ...]


Operation = (
    New
    | Append
    | Fork
    | Speculate
    | Rollback
    | Free
    | FreeAgain
    | Abort
    | Chunked
    | Evict
    | Reset
    | SwapOut
    | SwapIn
    | FreeSwapped
    | Reorder
    | Weights
    | LateWrite
    | Batch
    | SpeculateBatch
    | Overflow
    | AppendLayer
    | Attend
)
