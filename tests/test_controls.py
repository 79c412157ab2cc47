"""The controls of an audit: something exact must hold, something broken must be refuted, else it is void."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import tokenlaw
from tokenlaw import in_process
from tokenlaw.controlling import Audited, control
from tokenlaw.controls import Control
from tokenlaw.impl.faults.wrappers import WRAPPERS
from tokenlaw.impl.paged import PagedKVStore
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.reference import REFERENCE
from tokenlaw.impl.speculative import SampleAndMatchVerifier
from tokenlaw.spec.announcing import announce_evidence
from tokenlaw.spec.capabilities import effective_capabilities, probe_capabilities
from tokenlaw.spec.contracts import BLOCK_MANAGER, DECODER, KV_STORE, VERIFIER, CacheConfig, Implementation
from tokenlaw.spec.decoders import default_config
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.suites import PROFILES, Settings
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict
from tokenlaw.suites import suites

QUICK = replace(PROFILES["dev"], examples=40, seconds=4.0, requests=20_000)


class Blind:
    """A suite that says the same of everything; it stands for one of ours."""

    __module__ = "tokenlaw.fake"
    contract = BLOCK_MANAGER

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.checks = (Check("kv/content", "K1", "Some claim.", BLOCK_MANAGER, Severity.LEAK),)

    def run(self, implementation: Implementation, **options: Any) -> list[Evidence]:
        implementation.factories[BLOCK_MANAGER](CacheConfig())
        return [Evidence(self.checks[0], self.verdict, message="as always")]


def arguments(contract: str) -> tuple[Any, ...]:
    if contract == DECODER:
        return (default_config(),)
    return (CacheConfig(),) if contract in (BLOCK_MANAGER, KV_STORE) else ()


def somebody(contract: str, factory: Callable[..., Any] | None = None) -> Implementation:
    """The reference under another name, unless a factory is given."""
    made = factory or functools.partial(REFERENCE.factories[contract])
    return Implementation("somebody's", "1", {contract: made}, {contract: REFERENCE.capabilities[contract]})


def audited(contract: str, verdict: Verdict = Verdict.HOLDS, suite: Any = None, **changes: Any) -> Audited:
    """An audit in which every check has one verdict."""
    suite = suite or suites()[contract]
    made = Audited(
        suite=suite,
        implementation=somebody(contract),
        capabilities=REFERENCE.capabilities[contract],
        profile=QUICK,
        seed=0,
        settings=Settings(),
        evidence=[Evidence(check, verdict) for check in suite.checks],
        seconds=60.0,
    )
    return replace(made, **changes)


def controls(made: Audited) -> list[Control]:
    return list(control(made, lambda *_: None))


@pytest.mark.parametrize("contract", sorted(WRAPPERS))
def test_the_first_check_that_should_see_a_wrapper_sees_it(contract: str) -> None:
    """Chances: alpha is 1e-9 for the reference; the wrapper is too far off to be missed in any run."""
    first = WRAPPERS[contract].seen_by[0]
    rows = [Evidence(check, Verdict.HOLDS) for check in suites()[contract].checks if check.id == first]
    profile = replace(
        QUICK, examples=4 * QUICK.examples
    )  # few sessions may have nothing that the check is about
    reference, broken = controls(audited(contract, evidence=rows, profile=profile))
    assert (broken.verdict, broken.checks, broken.failed) == (Verdict.REFUTED, (first,), False)
    assert broken.tried > 0
    assert not reference.failed


@pytest.mark.parametrize("contract", sorted(WRAPPERS))
def test_a_wrapper_shows_the_capabilities_of_what_it_wraps(contract: str) -> None:
    known = REFERENCE.factories[contract]
    plain = known(*arguments(contract))
    broken = WRAPPERS[contract].broken(REFERENCE, contract, frozenset())
    wrapped = broken.factories[contract](*arguments(contract))
    assert probe_capabilities(contract, wrapped) == probe_capabilities(contract, plain)
    claimed = replace(broken, capabilities={contract: REFERENCE.capabilities[contract]})
    assert effective_capabilities(claimed, contract, wrapped) == REFERENCE.capabilities[contract]


@pytest.mark.parametrize("contract", sorted(WRAPPERS))
def test_the_checks_that_should_see_a_wrapper_exist(contract: str) -> None:
    assert set(WRAPPERS[contract].seen_by) <= {check.id for check in suites()[contract].checks}


def test_a_store_without_forks_has_a_stale_row_too() -> None:
    class Appending:
        def __init__(self, config: CacheConfig) -> None:
            store = PagedKVStore(config)
            self.allocate, self.append, self.read = store.allocate, store.append, store.read
            self.free, self.reserve = store.free, store.reserve

    plain = Implementation("appending", "1", {KV_STORE: Appending})
    store = WRAPPERS[KV_STORE].broken(plain, KV_STORE, frozenset()).factories[KV_STORE](CacheConfig())
    sequence = store.allocate()
    rows = torch.arange(3 * 2 * 2 * 4.0).reshape(3, 2, 2, 1, 4)
    store.reserve(sequence, 3)
    for row in rows:
        store.append(sequence, row, row)
    keys, values = store.read(sequence, 0)
    assert torch.equal(keys[:, 2], keys[:, 1])
    assert torch.equal(values[:, 2], rows[1, 0, :, 0])  # of the first layer
    assert not torch.equal(keys[:, 1], keys[:, 0])


def test_a_plain_function_can_be_wrapped() -> None:
    exact = SampleAndMatchVerifier()

    def verify(batch: Any, *, seed: int) -> Any:
        return exact.verify(batch, seed=seed)

    vars(verify)["claims"] = "exact"
    made = audited(VERIFIER, implementation=somebody(VERIFIER, lambda: verify), capabilities=frozenset())
    broken = controls(made)[1]
    assert (broken.verdict, broken.checks) == (Verdict.REFUTED, ("law/searched",))


def test_greedy_rows_have_nothing_to_replace() -> None:
    batch = tokenlaw.batch_of_laws(
        torch.zeros(64, 1, dtype=torch.int64),
        torch.tensor([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]).expand(64, 2, 3),
        torch.tensor([[0.6, 0.2, 0.2]]).expand(64, 1, 3),
    )
    plain = REFERENCE.factories[VERIFIER]()
    wrapped = WRAPPERS[VERIFIER].broken(REFERENCE, VERIFIER, frozenset()).factories[VERIFIER]()
    assert not torch.equal(plain.verify(batch, seed=1), wrapped.verify(batch, seed=1))
    greedy = replace(batch, params=replace(batch.params, temperature=torch.zeros(64, dtype=torch.float64)))
    assert torch.equal(plain.verify(greedy, seed=1), wrapped.verify(greedy, seed=1))


def test_a_suite_that_never_refutes_makes_an_audit_void() -> None:
    reference, broken = controls(audited(BLOCK_MANAGER, suite=Blind(Verdict.HOLDS)))
    assert (reference.failed, broken.failed, broken.verdict) == (False, True, Verdict.HOLDS)
    assert "nothing refuted it, of kv/content" in broken.message


def test_a_suite_that_blames_the_reference_makes_an_audit_void() -> None:
    reference, broken = controls(audited(BLOCK_MANAGER, suite=Blind(Verdict.REFUTED)))
    assert (reference.failed, reference.verdict, reference.checks) == (True, Verdict.REFUTED, ("kv/content",))
    assert reference.message == "as always"
    assert not broken.failed


def test_what_raises_in_a_control_is_unknown() -> None:
    def factory(config: CacheConfig) -> Any:
        raise KeyError("lost block")

    made = audited(BLOCK_MANAGER, suite=Blind(Verdict.HOLDS))
    broken = controls(replace(made, implementation=somebody(BLOCK_MANAGER, factory)))[1]
    assert (broken.verdict, broken.failed) == (Verdict.UNKNOWN, True)
    assert "lost block" in broken.message


def test_controls_that_would_add_nothing_are_left_out_and_say_why() -> None:
    left_out = [
        (audited(BLOCK_MANAGER, implementation=REFERENCE), 0, "the target is the reference"),
        (audited(BLOCK_MANAGER, Verdict.REFUTED, Blind(Verdict.HOLDS)), 1, "the target itself is refuted"),
        (
            audited(BLOCK_MANAGER, suite=Blind(Verdict.NOT_EXERCISED)),
            1,
            "in its part of the time nothing could be decided by kv/content",
        ),
        (audited(BLOCK_MANAGER, Verdict.UNKNOWN, Blind(Verdict.HOLDS)), 1, "no check that could see it"),
        (
            audited(BLOCK_MANAGER, Verdict.NOT_SUPPORTED, Blind(Verdict.NOT_EXERCISED)),
            0,
            "none of what was asked",
        ),
    ]
    for made, which, why in left_out:
        found = controls(made)[which]
        assert found.verdict is None, why
        assert why in found.message
        assert not found.failed
        assert "not run" in str(found)


def test_a_suite_of_somebody_else_has_no_controls() -> None:
    class Foreign(Blind):
        __module__ = "mine"

    assert controls(audited(BLOCK_MANAGER, suite=Foreign(Verdict.HOLDS))) == []


def test_a_check_in_this_process_has_controls_and_can_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "load_suites", lambda: {BLOCK_MANAGER: Blind(Verdict.HOLDS)})
    with pytest.raises(
        tokenlaw.Inconclusive, match="void: the audit of block-manager says nothing"
    ) as raised:
        tokenlaw.check_block_manager(PagedBlockManager)
    assert raised.value.report.verdict is Verdict.VOID
    without = tokenlaw.check_block_manager(PagedBlockManager, controls=False)
    assert without.controls == ()
    assert "controls=False" in without.command


class Argumentless:
    """A decoder of one token after the other, whose class takes no configuration."""

    def decode(self, request: DecodeRequest, *, seed: int) -> list[list[int]]:
        return [list(range(request.num_tokens))]


def test_a_factory_of_decoders_without_arguments_can_be_wrapped() -> None:
    broken = WRAPPERS[DECODER].broken(
        Implementation("mine", "1", {DECODER: Argumentless}, {}), DECODER, frozenset()
    )
    built = broken.factories[DECODER](default_config())
    assert built.decode(DecodeRequest(prompt=(0,), num_tokens=3), seed=1) == [[0, 1, 1]]


class Insistent(Blind):
    """Refutes what isn't the reference, and must not go on then."""

    __module__ = "tokenlaw.fake"

    def run(self, implementation: Implementation, **options: Any) -> list[Evidence]:
        if implementation.name == REFERENCE.name:
            return [Evidence(self.checks[0], Verdict.HOLDS)]
        announce_evidence(Evidence(self.checks[0], Verdict.REFUTED, operations=3))
        raise AssertionError("it went on")


def test_a_broken_wrapper_is_asked_no_more_once_it_is_refuted() -> None:
    suite = Insistent(Verdict.HOLDS)
    rows = [Evidence(suite.checks[0], Verdict.HOLDS)]
    _, broken = controls(audited(BLOCK_MANAGER, suite=suite, evidence=rows))
    assert (broken.verdict, broken.tried, broken.message) == (Verdict.REFUTED, 3, "")
