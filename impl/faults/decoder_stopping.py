"""Faults of what a step emits: stop tokens, the number of tokens, and what follows a rejection."""

from collections.abc import Sequence
from dataclasses import replace

from jaxtyping import Int64
from torch import Tensor

from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.drafting import Drafter
from tokenlaw.impl.engine.processors import row_parameters
from tokenlaw.impl.engine.samples import Row, Sample
from tokenlaw.impl.engine.verification import Emitted, Verification
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.sampling import SamplingParameters


class OnlyLastTokenStops(ReferenceDecoder):
    """Of the tokens of a step only the last one is compared with the stop tokens.

    Classes: C16.
    Report: huggingface/transformers 47912.
    Effect: text behind the stop token, depending on where steps end.
    Weakest check: decoder/stop.
    """

    def kept(self, sample: Sample, emitted: Sequence[Emitted]) -> Sequence[Emitted]:
        """As many as are asked for."""
        return emitted[: sample.remaining]


class RunKeptPastStop(ReferenceDecoder):
    """A stop token inside a run of drafts ends the sample, and the rest of the run stays.

    Classes: C16.
    Report: huggingface/transformers 47912 (text past the end).
    Effect: up to K tokens too many.
    Weakest check: decoder/stop.
    """

    def take(self, row: Row, emitted: Sequence[Emitted]) -> None:
        """Whole runs; then the sample has what it asked for."""
        sample = row.sample
        stopped = any(one.token in sample.request.stop for one in emitted)
        if stopped:
            count = len(sample.generated) + min(len(emitted), sample.remaining)
            sample.request = replace(sample.request, num_tokens=count, stop=frozenset())
        super().take(row, emitted)


class RejectedStopEnds(ReferenceDecoder):
    """A stop token among the drafts ends the sample, also where it was rejected.

    Classes: C16.
    Report: openvinotoolkit/openvino.genai 1951.
    Effect: samples are too short.
    Weakest check: decoder/law-stop.
    """

    def take(self, row: Row, emitted: Sequence[Emitted]) -> None:
        """The drafts are looked at, and not what became of them."""
        sample = row.sample
        if sample.request.stop & set(row.drafts):
            count = len(sample.generated) + len(self.kept(sample, emitted))
            sample.request = replace(sample.request, num_tokens=count)
        super().take(row, emitted)


class _LongDrafts(Drafter):
    def length(self, row: Row) -> int:
        return row.sample.request.draft_length


class MoreTokensThanAsked(ReferenceDecoder):
    """The number of tokens is looked at before a step, and not inside a run of drafts.

    Classes: C16.
    Report: huggingface/transformers 47912 (the block is committed first).
    Effect: up to K tokens too many.
    Weakest check: decoder/protocol.
    """

    drafter_class = _LongDrafts

    def kept(self, sample: Sample, emitted: Sequence[Emitted]) -> Sequence[Emitted]:
        """Up to the first stop token."""
        stops = (place for place, one in enumerate(emitted, 1) if one.token in sample.request.stop)
        return emitted[: next(stops, len(emitted))]


class BonusAfterRejection(Verification):
    """After a rejected draft comes its replacement, and then one more token, from the row behind the draft.

    Classes: C04, C06.
    Report: lucidrains/speculative-decoding 3; openvinotoolkit/openvino.genai 4190.
    Effect: the token behind a replacement follows a draft that was rejected.
    Weakest check: decoder/speculation.
    """

    def decide(self, batch: VerifyBatch, rows: list[Row]) -> Int64[Tensor, "batch drafts+1"]:
        """Its most likely token."""
        emitted = super().decide(batch, rows)
        for place, count in enumerate((emitted != NO_TOKEN).sum(1).tolist()):
            if count <= len(rows[place].drafts) and count < rows[place].sample.remaining:
                emitted[place, count] = batch.target_probs[place, count].argmax()
        return emitted


class GreedyWithDrafts(Verification):
    """Rows with drafts are verified greedily, whatever their temperature.

    Classes: C03.
    Report: sgl-project/sglang 31214; SharpAI/SwiftLM 88.
    Effect: TV .65 [.27, .83].
    Weakest check: decoder/law.
    """

    def parameters(self, rows: list[Row]) -> RowParameters:
        """Temperature 0 where there are drafts."""
        asked = [(row, row.sample.request.sampling) for row in rows]
        return row_parameters([replace(one, temperature=0.0) if row.drafts else one for row, one in asked])


class ParametersIgnoredWithDrafts(Verification):
    """Rows with drafts are verified without temperature and truncations.

    Classes: C02.
    Report: vllm-project/vllm 9834.
    Effect: TV .17 [.12, .24] at temperature .7.
    Weakest check: decoder/law-sampling.
    """

    def parameters(self, rows: list[Row]) -> RowParameters:
        """Defaults where there are drafts; greedy rows have a path of their own."""
        asked = [(row, row.sample.request.sampling) for row in rows]
        plain = SamplingParameters()
        return row_parameters([plain if row.drafts and one.temperature else one for row, one in asked])


DECODER_STOPPING_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("only_last_token_stops", OnlyLastTokenStops),
    ("run_kept_past_stop", RunKeptPastStop),
    ("rejected_stop_ends", RejectedStopEnds),
    ("more_tokens_than_asked", MoreTokensThanAsked),
    ("bonus_after_rejection", BonusAfterRejection),
    ("greedy_with_drafts", GreedyWithDrafts),
    ("parameters_ignored_with_drafts", ParametersIgnoredWithDrafts),
)
"""Names and classes."""
