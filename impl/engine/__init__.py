"""A small real decoder that joins the parts: paged cache, batching, drafts, verification."""

from tokenlaw.impl.engine.decoder import ReferenceDecoder

__all__ = ["ReferenceDecoder"]
