"""Telling a path of a decoder again leaves the decoder as it was."""

from support.small_decoders import SmallDecoder
from tokenlaw.spec.decoders import default_config
from tokenlaw.stats.decoder_retelling import _Watch
from tokenlaw.stats.enumeration.choices import Path


def test_a_decoder_that_is_built_once_for_all_gets_its_methods_back() -> None:
    decoder = SmallDecoder(default_config())
    decoder.abort = decoder.abort  # a method of the instance's own
    before = dict(vars(decoder))
    watch = _Watch(Path([]))
    watch.over(decoder)
    assert {"step", "submit"} <= vars(decoder).keys()
    watch.leave()
    assert vars(decoder) == before
