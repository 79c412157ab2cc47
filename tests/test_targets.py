"""From the name of a target to an implementation, and from a request to a session; all in this process."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tokenlaw.errors import BadUse, LacksContract
from tokenlaw.protocol import Request
from tokenlaw.session import Session, readable
from tokenlaw.spec.capabilities import (
    CAPABILITY_MEMBERS,
    effective_capabilities,
    needed,
    probe_capabilities,
)
from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    KV_STORE,
    PAGED_ATTENTION,
    CacheConfig,
    ContractError,
    Implementation,
)
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict
from tokenlaw.targets import adapters, build_once, resolve

TARGETS = Path(__file__).parent / "targets"


@pytest.fixture(autouse=True)
def _targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TARGETS))


def session(target: str, **options: Any) -> Session:
    return Session(Request(f"fake_targets:{target}", "", registry="fake_suites:suites", **options))


def test_an_adapter_is_found_by_its_name() -> None:
    assert adapters()["reference"] == "tokenlaw.impl.reference:REFERENCE"
    assert resolve("reference").name == "reference"


@pytest.mark.parametrize(
    ("attribute", "contract"),
    [("Manager", BLOCK_MANAGER), ("Store", KV_STORE), ("attention_factory", PAGED_ATTENTION)],
)
def test_a_plain_factory_shows_its_contract(attribute: str, contract: str) -> None:
    implementation = resolve(f"fake_targets:{attribute}")
    assert list(implementation.factories) == [contract]
    assert implementation.name == f"fake_targets:{attribute}"
    assert implementation.version == "7.5"
    _, capabilities = build_once(implementation, contract)
    assert capabilities <= CAPABILITY_MEMBERS[contract].keys()


def test_a_method_that_is_none_shows_no_capability_and_an_attribute_may_be_none() -> None:
    manager = resolve("fake_targets:Forking").factories[BLOCK_MANAGER](CacheConfig())
    manager.commit = manager.window = None
    assert probe_capabilities(BLOCK_MANAGER, manager) == {"fork", "window"}
    claimed = Implementation("x", "1", {BLOCK_MANAGER: type(manager)}, {BLOCK_MANAGER: frozenset({"commit"})})
    with pytest.raises(ContractError, match="'commit' but Forking lacks commit"):
        effective_capabilities(claimed, BLOCK_MANAGER, manager)


@pytest.mark.parametrize(
    ("contract", "capability", "message"),
    [
        (BLOCK_MANAGER, "swap", "needs swap (methods swap_out and swap_in)"),
        (BLOCK_MANAGER, "window", "needs window (attribute window)"),
        (BLOCK_MANAGER, "namespaces", "needs namespaces (keyword namespace of allocate)"),
        (PAGED_ATTENTION, "poison", "needs poison (declare it in Implementation.capabilities)"),
    ],
)
def test_what_a_check_needs_comes_with_how_to_give_it(contract: str, capability: str, message: str) -> None:
    assert needed(contract, {capability}) == message


def test_a_folder_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder_of_things").mkdir()
    (tmp_path / "module_of_things.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadUse, match="unknown target 'folder_of_things'"):
        resolve("folder_of_things")
    with pytest.raises(BadUse, match="write module_of_things:ATTRIBUTE"):
        resolve("module_of_things")
    assert "module_of_things" not in sys.modules


def test_a_factory_gets_the_configuration() -> None:
    built = resolve("fake_targets:Manager").factories[BLOCK_MANAGER](CacheConfig(block_size=7))
    assert built.config.block_size == 7


def test_the_working_directory_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_in_working_directory.py").write_text("from fake_targets import BOTH\n")
    monkeypatch.chdir(tmp_path)
    assert resolve("module_in_working_directory:BOTH").name == "both"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("referense", "unknown target 'referense'; did you mean 'reference'"),
        ("zzz", "known: reference"),
        (":x", "write module:attribute"),
        ("fake_targets:", "write module:attribute"),
        ("fake_targets.py:Manager", "names a file: write fake_targets:Manager, where"),
        ("./tests/fake_targets.py::Manager", "names a file: write fake_targets:Manager, where"),
        (
            "no_such_module:x",
            "importing no_such_module failed: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("broken_module:x", "importing broken_module failed: ImportError: no kernel for this device"),
        ("fake_targets:BOHT", "has no attribute 'BOHT'; did you mean 'BOTH'?"),
        ("fake_targets:NUMBER", "is a int; expected an Implementation or a factory"),
        (
            "fake_targets:wrong_factory",
            "the factory returned dict, which fulfils no contract (block-manager: allocate",
        ),
        (
            "fake_targets:Nearly",
            "no contract (it lacks read of kv-store; or block_table, num_free_blocks of block-manager)",
        ),
        ("fake_targets", "fake_targets is a module: write fake_targets:ATTRIBUTE"),
        ("broken_module", "broken_module is a module: write broken_module:ATTRIBUTE"),
        ("json.decoder", "json.decoder is a module"),
        ("fake_targets.Manager", "unknown target 'fake_targets.Manager'"),
        ("fake_targets:raising_factory", "its factory raised ValueError: no device"),
        ("fake_targets:unspeakable_factory", "its factory raised Unspeakable (its message can't be shown"),
        ("fake_targets:unreadable.attribute", "looking for unreadable.attribute raised RuntimeError: no"),
        ("fake_targets:Unprobable", "what its factory built raised ValueError: no"),
    ],
)
def test_a_target_that_cannot_be_used_is_one_line(target: str, message: str) -> None:
    with pytest.raises(BadUse) as caught:
        resolve(target)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("LYING", {}, "declares block-manager capability 'fork' but Manager lacks fork"),
        (
            "STRAY",
            {},
            "stray: declares capabilities for 'kv-stor', for which it has no factory; it has factories for "
            "'kv-store'",
        ),
        ("STORE_ONLY", {"only": "fake/*"}, "matches no check of kv-store"),
        ("STORE_ONLY", {"contracts": (BLOCK_MANAGER,)}, "fulfils kv-store, not block-manager"),
        ("BOTH", {"contracts": ("kv-stor",)}, "unknown contract 'kv-stor'; did you mean 'kv-store'?"),
        ("BOTH", {"only": "fake/contend"}, "matches no check; did you mean 'fake/content'"),
        ("BOTH", {"profile": "deeper"}, "unknown profile 'deeper'; did you mean 'deep'?"),
        ("WRONG", {}, "the block-manager factory returned dict, which lacks allocate"),
    ],
)
def test_a_request_that_cannot_be_fulfilled_is_one_line(
    target: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadUse) as caught:
        session(target, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, LacksContract) == (target == "STORE_ONLY")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operations": []}, "saved.json: it needs swap, which this target doesn't offer"),
        (
            {"contract": KV_STORE},
            "saved.json needs a kv-store; target 'fake_targets:Manager' fulfils block-manager",
        ),
        ({"contract": "engine"}, "saved.json: unknown contract 'engine'"),
        ({"schema": "tokenlaw.attention/1"}, "saved.json: unknown contract 'paged-attention'"),
    ],
)
def test_a_counterexample_that_does_not_fit_is_one_line(changes: dict[str, Any], message: str) -> None:
    data = {
        "schema": "tokenlaw.trace/1",
        "contract": BLOCK_MANAGER,
        "operations": [{"op": "reset"}],
    } | changes
    with pytest.raises(BadUse) as caught:
        list(session("Manager", replay=data, replay_source="saved.json").run(lambda *_: None, lambda _: None))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"), [("Raising", "KeyError: 'lost block'"), ("Quitting", "SystemExit: leaving")]
)
def test_an_exception_of_the_implementation_makes_every_check_unknown(name: str, expected: str) -> None:
    heard: list[Any] = []
    rows = list(session(name).run(lambda *_: None, heard.append))
    assert [row.verdict for row in rows] == [Verdict.UNKNOWN, Verdict.NOT_SUPPORTED]
    assert expected in rows[0].message
    assert "in append" in rows[0].message
    assert len(heard) == 1


def test_what_was_refuted_before_an_exception_stays_refuted() -> None:
    rows = list(session("RefutedThenRaising").run(lambda *_: None, lambda _: None))
    assert [row.verdict for row in rows] == [Verdict.REFUTED, Verdict.NOT_SUPPORTED]
    assert "later in the run: the implementation raised KeyError: 'lost block'" in rows[0].message


def test_a_message_too_long_to_be_read_is_shortened() -> None:
    check = Check("fake/long", "K1", "Long.", BLOCK_MANAGER, Severity.CRASH)
    message = readable(Evidence(check, Verdict.UNKNOWN, message="a" * 10**6 + "\n" + "b\n" * 10**6)).message
    assert len(message) < 25_000
    assert message.startswith("aaa")
    assert message.endswith("b\nb\n")


def test_an_exception_of_a_suite_is_not_blamed_on_the_implementation() -> None:
    faulty = Session(Request("fake_targets:Manager", "", registry="fake_suites:faulty"))
    with pytest.raises(RuntimeError, match="the suite is at fault"):
        list(faulty.run(lambda *_: None, lambda _: None))
