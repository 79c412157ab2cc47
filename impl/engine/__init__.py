"""A small real decoder that joins the parts: scheduler, paged cache, drafts and their verification.

Two factories of contract `Decoder`: `ReferenceDecoder` over the models of its configuration, whose keys and
values are the tokens themselves, and `TransformerDecoder` over tiny transformers of its own.
"""

from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.transformer_decoder import TransformerDecoder

__all__ = ["ReferenceDecoder", "TransformerDecoder"]
