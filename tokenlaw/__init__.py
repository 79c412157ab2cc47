"""Is this decoding engine exact? An executable specification and the evidence that decides.

Public names are loaded on first use, so that importing the package (and starting pytest with its plugin)
needs neither torch nor hypothesis.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenlaw.api import (
        check_block_manager,
        check_kv_store,
        check_paged_attention,
        check_verifier,
    )
    from tokenlaw.api_decoder import check_decoder
    from tokenlaw.errors import BadUse
    from tokenlaw.in_process import Inconclusive, Refuted
    from tokenlaw.prove_here import prove
    from tokenlaw.report import Report
    from tokenlaw.runner import audit
    from tokenlaw.spec.batch_checks import batch_of_laws
    from tokenlaw.spec.contracts import BlockCopy, CacheConfig, Implementation, OutOfBlocks
    from tokenlaw.spec.decoder_contract import DecoderConfig
    from tokenlaw.spec.deviations import KnownDeviation
    from tokenlaw.spec.suites import Settings
    from tokenlaw.spec.verdicts import Verdict

if find_spec("tokenlaw.spec") is None:
    # Python started in the root of a checkout, where this folder stands before the installed package, but its
    # sub-packages lie beside it and not in it: everything else comes from the installed package.
    _root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _installed = PathFinder.find_spec("tokenlaw", [p for p in sys.path if os.path.abspath(p) != _root])
    if _installed is None or _installed.submodule_search_locations is None:
        raise ImportError(f"{_root}/tokenlaw is a source folder: install it first (pip install {_root})")
    __path__ = list(_installed.submodule_search_locations)

__version__ = "0.1.0"

__all__ = [
    "BadUse",
    "BlockCopy",
    "CacheConfig",
    "DecoderConfig",
    "Implementation",
    "Inconclusive",
    "KnownDeviation",
    "OutOfBlocks",
    "Refuted",
    "Report",
    "Settings",
    "Verdict",
    "audit",
    "batch_of_laws",
    "check_block_manager",
    "check_decoder",
    "check_kv_store",
    "check_paged_attention",
    "check_verifier",
    "prove",
]

_HOMES = {
    "api": (
        "check_block_manager",
        "check_kv_store",
        "check_paged_attention",
        "check_verifier",
    ),
    "api_decoder": ("check_decoder",),
    "errors": ("BadUse",),
    "in_process": ("Inconclusive", "Refuted"),
    "prove_here": ("prove",),
    "report": ("Report",),
    "runner": ("audit",),
    "spec.batch_checks": ("batch_of_laws",),
    "spec.contracts": ("BlockCopy", "CacheConfig", "Implementation", "OutOfBlocks"),
    "spec.decoder_contract": ("DecoderConfig",),
    "spec.deviations": ("KnownDeviation",),
    "spec.suites": ("Settings",),
    "spec.verdicts": ("Verdict",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"tokenlaw.{module}"), name)
    raise AttributeError(f"module 'tokenlaw' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
