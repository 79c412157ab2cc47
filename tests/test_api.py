"""The library: one call in somebody's own test."""

import functools
from pathlib import Path

import pytest

import tokenlaw
from support.fakes import put_in_place
from tokenlaw import in_process


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_in_place(monkeypatch, tmp_path)


def test_a_manager_that_holds() -> None:
    from fake_targets import Manager

    report = tokenlaw.check_block_manager(Manager, seed=4)
    assert report.verdict is tokenlaw.Verdict.HOLDS
    assert (report.target.name, report.seed) == ("Manager", 4)
    assert list(Path.cwd().iterdir()) == []


def test_a_refuted_manager_raises_the_complete_message() -> None:
    from fake_targets import Refuted

    with pytest.raises(AssertionError) as caught:
        tokenlaw.check_block_manager(Refuted, seed=4, only="fake/*")
    assert isinstance(caught.value, tokenlaw.Refuted)
    message = str(caught.value)
    assert "refuted: fake/content\nexpected 1" in message
    assert "tokenlaw.check_block_manager(Refuted, profile='dev', seed=4, only='fake/*')" in message
    (saved,) = Path(".tokenlaw").rglob("*.json")
    assert f"saved:  {saved}\nreplay: tokenlaw replay {saved} --target fake_targets:Refuted" in message
    assert caught.value.report.verdict is tokenlaw.Verdict.REFUTED


def test_no_replay_command_is_made_up_for_a_factory_of_this_process() -> None:
    from fake_targets import Refuted

    with pytest.raises(tokenlaw.Refuted) as caught:
        tokenlaw.check_block_manager(functools.partial(Refuted))
    assert "saved:  " in str(caught.value)
    assert "replay: " not in str(caught.value)


def test_what_was_not_decided_raises_too() -> None:
    from fake_targets import NotExercised

    with pytest.raises(tokenlaw.Inconclusive, match="not exercised: fake/content"):
        tokenlaw.check_block_manager(NotExercised)


def test_without_raising_the_report_comes_back() -> None:
    from fake_targets import Refuted

    assert tokenlaw.check_block_manager(Refuted, raises=False).status == 1


def test_a_store_and_declared_capabilities() -> None:
    from fake_targets import Forking, Store

    assert tokenlaw.check_kv_store(Store).target.contracts == ("kv-store",)
    probed = tokenlaw.check_block_manager(Forking)
    declared = tokenlaw.check_block_manager(Forking, capabilities=())
    assert [str(row.verdict) for row in probed.evidence] == ["holds", "holds"]
    assert [str(row.verdict) for row in declared.evidence] == ["holds", "not supported"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile": "deepest"}, "unknown profile 'deepest'; did you mean 'deep'?"),
        ({"only": "store/*"}, "matches no check"),
        ({"capabilities": ["fork"]}, "declares block-manager capability 'fork' but Manager lacks fork"),
        ({"capabilities": ["forks"]}, "unknown block-manager capability 'forks'"),
    ],
)
def test_bad_use(options: dict[str, object], message: str) -> None:
    from fake_targets import Manager

    with pytest.raises(tokenlaw.BadUse, match=message):
        tokenlaw.check_block_manager(Manager, **options)


def test_a_factory_that_returns_the_wrong_thing_is_bad_use() -> None:
    from fake_targets import wrong_factory

    with pytest.raises(tokenlaw.BadUse, match="factory returned dict, which lacks allocate"):
        tokenlaw.check_block_manager(wrong_factory)


def test_real_attention_is_checked_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenlaw.checks import load_suites
    from tokenlaw.targets import resolve

    monkeypatch.setattr(in_process, "load_suites", load_suites)
    factory = resolve("reference").factories["paged-attention"]
    report = tokenlaw.check_paged_attention(factory, only="*/inputs", profile="dev")
    assert report.verdict is tokenlaw.Verdict.HOLDS


def test_public_names_are_there_and_no_others() -> None:
    for name in tokenlaw.__all__:
        assert getattr(tokenlaw, name).__name__ == name
        assert name in dir(tokenlaw)
    with pytest.raises(AttributeError, match="module 'tokenlaw' has no attribute 'check_engine'"):
        _ = tokenlaw.check_engine
