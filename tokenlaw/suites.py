"""Every suite behind every face: those of traces and cases, the suite of laws, and decoders with both."""

from collections.abc import Mapping

from tokenlaw.properties.suites import ADDRESSES, LazySuites
from tokenlaw.spec.contracts import DECODER, VERIFIER
from tokenlaw.spec.suites import Suite


def suites() -> Mapping[str, Suite]:
    """All suites by contract; iterating imports nothing, looking a suite up imports its module."""
    return LazySuites(
        {
            **ADDRESSES,
            VERIFIER: ("tokenlaw.stats.verifier_suite", "VerifierSuite"),
            DECODER: ("tokenlaw.joined", "decoder_suite"),
        }
    )
