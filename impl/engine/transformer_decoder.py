"""The reference decoder over transformers of its own: keys and values in the cache, attention through it."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.runner import Run, Runner, slots
from tokenlaw.impl.engine.transformer import Heads, TinyTransformer, tiny_transformer
from tokenlaw.impl.paged.attention import GatherAttention
from tokenlaw.spec.contracts import BlockCopy
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel

_TARGET_SEED, _DRAFT_SEED = 1, 2


class TransformerRunner:
    """Writes keys and values of new tokens through the block table, and attends to what the table leads to.

    Parameters
    ----------
    model : the target.
    config : the shape of the cache. Unwritten slots hold NaN, so that reading one shows at once.
    """

    def __init__(self, model: TinyTransformer, config: DecoderConfig) -> None:
        self._model, self._block_size = model, config.block_size
        shape = (2, model.layers, config.num_blocks, config.block_size, model.heads, model.head_size)
        self._cache = torch.full(shape, torch.nan, dtype=torch.float64)
        self._attention = GatherAttention()

    def copy(self, copies: Sequence[BlockCopy]) -> None:
        """Copy blocks, keys and values of all layers."""
        for copy in copies:
            self._cache[:, :, copy.destination] = self._cache[:, :, copy.source]

    def run(self, run: Run, wanted: int) -> Float64[Tensor, "wanted vocabulary"]:
        """Write the KV of the tokens; logits behind the last ``wanted`` of them."""
        written = slots(run.table, run.start, run.end, self._block_size)
        table, length = torch.tensor([list(run.table)]), torch.tensor([run.end])

        def attend(layer: int, query: Heads, keys: Heads, values: Heads) -> Heads:
            for cache, new in zip(self._cache[:, layer], (keys, values), strict=True):
                cache.flatten(0, 1)[written] = new
            cached_keys, cached_values = self._cache[:, layer]
            scale = self._model.head_size**-0.5
            output = self._attention.attend(query[None], cached_keys, cached_values, table, length, scale)
            assert isinstance(output, Tensor)
            return output[0]

        logits = self._model.logits(tuple(run.tokens), run.start, attend)
        return logits[len(run.tokens) - wanted :]


class TransformerDecoder(ReferenceDecoder):
    """A decoder whose target and draft model are tiny transformers of its own.

    Parameters
    ----------
    config : its models are left alone; the rest is as for `ReferenceDecoder`.
    """

    def __init__(self, config: DecoderConfig) -> None:
        self._target = tiny_transformer(config.vocabulary_size, _TARGET_SEED, layers=2, heads=2)
        super().__init__(config)

    def target_law(self, tokens: Tokens) -> list[float]:
        """Law of the next token, by contiguous attention over all tokens, without any cache."""
        return self._target.law(tuple(tokens))

    def runner(self, config: DecoderConfig) -> Runner:
        """The transformer with its paged cache."""
        return TransformerRunner(self._target, config)

    def draft_model(self, config: DecoderConfig) -> LanguageModel[float]:
        """A smaller transformer, without a cache."""
        return tiny_transformer(config.vocabulary_size, _DRAFT_SEED, layers=1, heads=1).law
