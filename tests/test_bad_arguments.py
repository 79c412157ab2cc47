"""Bad arguments of the library are refused in one line that says what to write, before anything is run."""

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

import tokenlaw
from tokenlaw.arguments import shown
from tokenlaw.errors import BadUse
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.settings import plain_settings
from tokenlaw.writing import formatted

NAN, INF = float("nan"), float("inf")
ALPHA, TOLERANCE = "a number between 0 and 1", "0 or a number below 1"
BUDGET, SEED = "1 or more requests", "a whole number, 0 or more"
GLOB, FLAG = "a glob over check ids, such as 'law/*'", "True or False"
NAMES, DEVICE = (
    "a collection of names, such as ['fork']",
    "the name of a torch device, such as 'cpu' or 'cuda'",
)
EARLIER = "a report, or the path of its JSON file"

EXPECTED: list[tuple[str, Any, str]] = [
    *(("alpha", value, ALPHA) for value in ("x", NAN, 0, 1, -1, INF, None, True, 1j, [0.5])),
    *(("tolerance", value, TOLERANCE) for value in ("x", NAN, -0.1, 1, INF, None, True)),
    *(("budget", value, BUDGET) for value in (True, 1.5, 0, -1, "10", NAN, INF)),
    *(("seed", value, SEED) for value in (-1, 1.5, True, None, "0", NAN)),
    *(("only", value, GLOB) for value in (3, None, b"law/*")),
    *(("capabilities", value, NAMES) for value in ("draft", b"draft", 3, [3], True, [["draft"]])),
    *(("device", value, DEVICE) for value in (3, None, ["cpu"])),
    *((name, value, FLAG) for name in ("controls", "raises") for value in ("no", None, 1)),
    *(("continued", value, EARLIER) for value in (3, {}, True)),
]

UNKNOWN = [
    ("claims", 3, "unknown claim 3; known: approximate, block, exact, textbook"),
    ("claims", "exakt", "unknown claim 'exakt'; did you mean 'exact'?"),
    ("claims", [], "unknown claim []; known: approximate, block, exact, textbook"),
    ("profile", 3, "unknown profile 3; known: ci, deep, dev"),
    ("profile", [], "unknown profile []; known: ci, deep, dev"),
    ("profile", None, "unknown profile None; known: ci, deep, dev"),
    ("device", "nosuch", "device 'nosuch' can't be used here: RuntimeError: Expected one of cpu"),
    ("device", "meta", "device 'meta' can't be used here: "),
    ("capabilities", ["nosuch"], "ChainVerifier: unknown verifier capability 'nosuch'; known: draft"),
    ("only", "nosuch/*", "--only 'nosuch/*' matches no check; known: law/"),
    ("continued", "no/such.json", "no/such.json: can't be read: No such file or directory"),
]


class NeedsArguments:
    """Can't be built by the suite."""

    def __init__(self, model: object) -> None:
        self.model = model

    def verify(self, batch: Any, *, seed: int) -> Any:
        return batch


class WithoutSeed:
    """Its step takes no seed."""

    def verify(self, batch: Any) -> Any:
        return batch


def declaring(**attributes: Any) -> object:
    """A verifier that says something wrong of itself."""
    verifier = ChainVerifier()
    vars(verifier).update(attributes)
    return verifier


NO_VERIFIERS: list[tuple[Any, str]] = [
    (None, "None is no verifier: give an object with verify, or a function of (batch, *, seed)"),
    (3, "an int is no verifier: give an object with verify, or a function of (batch, *, seed)"),
    ([ChainVerifier()], "a list is no verifier: give an object with verify, or"),
    (lambda x, seed: x, "target '<lambda>' takes (x, seed), but a factory is called with no arguments; a "),
    (
        lambda batch: batch,
        "target '<lambda>' takes a batch but no keyword seed; write verify(batch, *, seed)",
    ),
    (lambda: 3, "<lambda>: int is no verifier: it has no method verify, and it is no function of (batch, *"),
    (
        NeedsArguments,
        "target 'NeedsArguments' takes (model), but a factory is called with no arguments; a ver",
    ),
    (WithoutSeed, "WithoutSeed: its verify takes (batch), but is called as verify(batch, seed=0)"),
    (declaring(verify=3), "a ChainVerifier is no verifier: give an object with verify"),
    (declaring(claims=3), "ChainVerifier: it claims 3; a verifier claims one of textbook, block, exact"),
    (declaring(claims=np.zeros(2)), "ChainVerifier: it claims array([0., 0.]); a verifier claims one of"),
    (declaring(refuses="greedy"), "ChainVerifier: refuses is 'greedy'; it must be a set of names, such as"),
    (declaring(refuses=3), "ChainVerifier: refuses is 3; it must be a set of names, such as {'greedy'}"),
    (declaring(refuses=[3, "x"]), "ChainVerifier: it refuses [3, 'x']; a verifier may refuse greedy, looked"),
    (declaring(most_rows=0), "ChainVerifier: most_rows is 0; it must be a whole number from 1 on"),
]

OTHERS: list[tuple[Callable[..., Any], Any, str]] = [
    (tokenlaw.check_block_manager, None, "None is no factory of a block-manager: give a function or a class"),
    (tokenlaw.check_kv_store, {}, "a dict is no factory of a kv-store: give a function or a class"),
    (tokenlaw.check_paged_attention, 3, "an int is no factory of a paged-attention: give a function or a"),
    (tokenlaw.check_decoder, None, "None is no factory of decoders: give a function or a class"),
    (tokenlaw.check_block_manager, lambda: 3, "takes (), but a factory is called with a CacheConfig"),
    (tokenlaw.check_kv_store, lambda config: 3, "factory returned int, which lacks allocate, append"),
    (tokenlaw.check_decoder, lambda a, b: 3, "takes (a, b), but a factory is called with"),
]


def refusal(check: Callable[..., Any], offered: Any, **options: Any) -> str:
    """The message of the refusal, which is one line without a traceback."""
    with pytest.raises(BadUse) as caught:
        check(offered, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize(("name", "value", "expected"), EXPECTED)
def test_a_wrong_value_is_refused_with_what_to_write(name: str, value: Any, expected: str) -> None:
    message = refusal(tokenlaw.check_verifier, ChainVerifier(), **{name: value})
    assert message == f"{name} {shown(value)}: expected {expected}"


@pytest.mark.parametrize(("name", "value", "message"), UNKNOWN)
def test_what_is_not_known_is_named(name: str, value: Any, message: str) -> None:
    assert message in refusal(tokenlaw.check_verifier, ChainVerifier(), **{name: value})


@pytest.mark.parametrize(("offered", "message"), NO_VERIFIERS)
def test_what_is_no_verifier_is_refused(offered: Any, message: str) -> None:
    assert message in refusal(tokenlaw.check_verifier, offered)


@pytest.mark.parametrize(("check", "offered", "message"), OTHERS)
def test_what_is_no_factory_is_refused(check: Callable[..., Any], offered: Any, message: str) -> None:
    assert message in refusal(check, offered)


@pytest.mark.parametrize(
    "check",
    [
        tokenlaw.check_block_manager,
        tokenlaw.check_kv_store,
        tokenlaw.check_paged_attention,
        tokenlaw.check_verifier,
        tokenlaw.check_decoder,
    ],
)
@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", -1), ("profile", "x"), ("only", 3), ("controls", "no"), ("capabilities", "x")],
)
def test_all_checks_refuse_alike(check: Callable[..., Any], name: str, value: Any) -> None:
    message = refusal(check, lambda *_, **__: None, **{name: value})
    assert message.startswith((f"{name} ", f"unknown {name} "))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"contracts": "verifier"},
            "contracts 'verifier': expected a collection of names, such as ['verifier']",
        ),
        ({"settings": {"alpha": 0.1}}, "settings {'alpha': 0.1}: expected tokenlaw.Settings(...)"),
        ({"settings": tokenlaw.Settings(alpha=NAN)}, "alpha nan: expected a number between 0 and 1"),
        ({"seed": "0"}, "seed '0': expected a whole number, 0 or more"),
        ({"profile": 3}, "unknown profile 3; known: ci, deep, dev"),
        ({"only": 3}, f"only 3: expected {GLOB}"),
        ({"controls": "no"}, "controls 'no': expected True or False"),
    ],
)
def test_an_audit_by_name_refuses_alike(options: dict[str, Any], message: str) -> None:
    assert refusal(tokenlaw.audit, "reference", **options) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_paths": 0}, "max_paths 0: expected 1 or more paths"),
        ({"max_paths": "x"}, "max_paths 'x': expected 1 or more paths"),
        ({"seconds": NAN}, "seconds nan: expected a number, 0 or more"),
        ({"seconds": "x"}, "seconds 'x': expected a number, 0 or more"),
        ({"tolerance": -0.1}, f"tolerance -0.1: expected {TOLERANCE}"),
        ({"tolerance": 1.0}, f"tolerance 1.0: expected {TOLERANCE}"),
        ({"tolerance": INF}, f"tolerance inf: expected {TOLERANCE}"),
        ({"tolerance": NAN}, f"tolerance nan: expected {TOLERANCE}"),
        ({"tolerance": "x"}, f"tolerance 'x': expected {TOLERANCE}"),
        ({"raises": 1}, "raises 1: expected True or False"),
    ],
)
def test_a_proof_refuses_alike(options: dict[str, Any], message: str) -> None:
    assert refusal(tokenlaw.prove, lambda: 0, spec=lambda: 0, **options) == message


def test_a_verifier_that_exits_is_a_crash_and_ends_nothing() -> None:
    def verify(batch: Any, *, seed: int) -> Any:
        sys.exit(3)

    with pytest.raises(tokenlaw.Inconclusive, match="SystemExit: 3"):
        tokenlaw.check_verifier(verify, only="law/protocol", controls=False)


def test_numbers_of_numpy_and_devices_of_torch_become_plain() -> None:
    given: dict[str, Any] = {"device": torch.device("cpu"), "alpha": np.float32(0.25), "budget": np.int64(7)}
    plain = plain_settings(tokenlaw.Settings(**given, tolerance=0))
    assert (plain.device, plain.alpha, plain.budget, plain.tolerance) == ("cpu", 0.25, 7, 0.0)
    assert [type(one) for one in (plain.device, plain.alpha, plain.budget)] == [str, float, int]


def test_a_seed_of_numpy_is_stored_in_a_report() -> None:
    given: dict[str, Any] = {"seed": np.int64(3), "budget": np.int64(100), "alpha": np.float64(0.5)}
    report = tokenlaw.check_verifier(ChainVerifier(), only="law/protocol", controls=False, **given)
    stored = msgspec.json.decode(formatted(report.to_data()))
    assert (stored["seed"], stored["settings"]["budget"], stored["settings"]["alpha"]) == (3, 100, 0.5)
