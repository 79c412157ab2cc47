"""What faulty attention kernels are made from: exact, row by row, every step a method."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Scores = Float[Tensor, "query_heads num_queries tokens"]
State = tuple[Float[Tensor, "num_queries query_heads head_size"], Float[Tensor, "num_queries query_heads"]]


class SteppedAttention:
    """A `PagedAttention` with every optional capability, in float32."""

    def attend(
        self,
        query: Float[Tensor, "batch num_queries query_heads head_size"],
        key_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        value_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        block_tables: Int[Tensor, "batch max_blocks"],
        lengths: Int[Tensor, " batch"],
        scale: float,
        *,
        window: int | None = None,
        softcap: float | None = None,
        sinks: Float[Tensor, " query_heads"] | None = None,
        alibi_slopes: Float[Tensor, " query_heads"] | None = None,
        return_lse: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attention of each row's queries; arguments and results as for `PagedAttention`."""
        states = []
        for row, length in enumerate(self.lengths(lengths)):
            keys = self.gather(key_cache, block_tables[row], length).float()
            values = self.gather(value_cache, block_tables[row], length).float()
            heads = self.kv_heads(query.shape[2], key_cache.shape[2])
            scores = self.scores(query[row].float(), keys[:, heads], scale, softcap)
            distance = self.distance(query.shape[1], length)
            if alibi_slopes is not None:
                scores = scores + self.alibi(alibi_slopes[:, None, None], distance)
            scores = self.masked(scores, self.visible(distance, window), softcap)
            states.append(self.combine(scores, values[:, heads], sinks))
        output = torch.stack([state[0] for state in states]).to(query.dtype)
        return (output, torch.stack([state[1] for state in states])) if return_lse else output

    def lengths(self, lengths: Int[Tensor, " batch"]) -> list[int]:
        """Tokens of each row; called once a call."""
        found: list[int] = lengths.tolist()
        return found

    def gather(
        self,
        cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        table: Int[Tensor, " max_blocks"],
        length: int,
    ) -> Float[Tensor, "tokens kv_heads head_size"]:
        """Keys or values of a row, in order."""
        pages = cache[table[: -(-length // cache.shape[1])].long()]
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

    def merge(
        self, outputs: Float[Tensor, "parts ... head_size"], lses: Float[Tensor, "parts ..."]
    ) -> tuple[Float[Tensor, "... head_size"], Float[Tensor, "..."]]:
        """Attention over all keys from that over disjoint parts of them."""
        lse = torch.logsumexp(lses, 0)
        weights = torch.exp(lses - lse.nan_to_num(neginf=0.0))
        return (weights[..., None] * outputs.float()).sum(0).to(outputs.dtype), lse
