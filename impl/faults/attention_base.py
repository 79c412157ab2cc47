"""What faulty attention kernels are made from: the reference with rows whose every step is a method."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tokenlaw.impl.paged.attention import Formula, GatherAttention

Scores = Float[Tensor, "query_heads num_queries tokens"]
State = tuple[Float[Tensor, "num_queries query_heads head_size"], Float[Tensor, "num_queries query_heads"]]


class SteppedAttention(GatherAttention):
    """The reference with rows of another make: in float32, from whole pages, summed in another order."""

    def _row(
        self,
        query: Float[Tensor, "num_queries query_heads head_size"],
        key_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        value_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        table: list[int],
        length: int,
        formula: Formula,
    ) -> State:
        scale, window, softcap, sinks, alibi_slopes = formula
        pages = torch.tensor(table, dtype=torch.int64)
        keys, values = (self.gather(cache, pages, length).float() for cache in (key_cache, value_cache))
        heads = self.kv_heads(query.shape[1], key_cache.shape[2])
        scores = self.scores(query.float(), keys[:, heads], scale, softcap)
        distance = self.distance(query.shape[0], length)
        if alibi_slopes is not None:
            scores = scores + self.alibi(alibi_slopes[:, None, None], distance)
        scores = self.masked(scores, self.visible(distance, window), softcap)
        return self.combine(scores, values[:, heads], sinks)

    def gather(
        self,
        cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        table: Int[Tensor, " max_blocks"],
        length: int,
    ) -> Float[Tensor, "tokens kv_heads head_size"]:
        """Keys or values of a row, in order."""
        pages = cache[table[: -(-length // cache.shape[1])]]
        return pages.reshape(-1, *cache.shape[2:])[:length]

    def kv_heads(self, query_heads: int, kv_heads: int) -> Int[Tensor, " query_heads"]:
        """The KV head of each query head."""
        return torch.arange(query_heads) // (query_heads // kv_heads)

    def scores(
        self,
        query: Float[Tensor, "num_queries query_heads head_size"],
        keys: Float[Tensor, "tokens query_heads head_size"],
        scale: float,
        softcap: float | None,
    ) -> Scores:
        """Scaled products, capped."""
        scores = scale * torch.einsum("qhd,khd->hqk", query, keys)
        return scores if softcap is None else softcap * torch.tanh(scores / softcap)

    def distance(self, num_queries: int, length: int) -> Int[Tensor, "num_queries tokens"]:
        """Position of the key minus that of the query."""
        positions = length - num_queries + torch.arange(num_queries)
        return torch.arange(length)[None] - positions[:, None]

    def alibi(
        self, slopes: Float[Tensor, "query_heads 1 1"], distance: Int[Tensor, "num_queries tokens"]
    ) -> Scores:
        """What ALiBi adds to the scores."""
        return slopes * distance

    def visible(
        self, distance: Int[Tensor, "num_queries tokens"], window: int | None
    ) -> Bool[Tensor, "num_queries tokens"]:
        """Which keys each query sees."""
        return (distance <= 0) & (distance > -(window or math.inf))

    def masked(
        self, scores: Scores, visible: Bool[Tensor, "num_queries tokens"], softcap: float | None
    ) -> Scores:
        """Scores with minus infinity where a key isn't seen; ``softcap`` was applied before."""
        return scores.masked_fill(~visible, -math.inf)

    def combine(
        self,
        scores: Scores,
        values: Float[Tensor, "tokens query_heads head_size"],
        sinks: Float[Tensor, " query_heads"] | None,
    ) -> State:
        """Weighted values, and the log-sum-exp as it is reported."""
        lse = self.log_denominator(scores, sinks)
        weights = self.weights(scores, lse)
        return torch.einsum("hqk,khd->qhd", weights, values), self.reported(lse).T

    def weights(self, scores: Scores, lse: Float[Tensor, "query_heads num_queries"]) -> Scores:
        """Probabilities of the keys."""
        return torch.exp(scores - lse.nan_to_num(neginf=0.0)[..., None])

    def log_denominator(
        self, scores: Scores, sinks: Float[Tensor, " query_heads"] | None
    ) -> Float[Tensor, "query_heads num_queries"]:
        """Log-sum-exp of the scores, and of the sinks."""
        lse = torch.logsumexp(scores, -1)
        return lse if sinks is None else torch.logaddexp(lse, sinks.float()[:, None])

    def reported(self, lse: Tensor) -> Tensor:
        """The log-sum-exp that the caller gets."""
        return lse
