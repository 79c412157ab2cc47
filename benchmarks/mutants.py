"""Mutation testing of the specification and of the checkers, which compare what a target does with it.

cosmic-ray's operators change one thing at a time in a module of ``spec`` or ``properties``; the mutant is
killed when a test fails. Tests are imported and collected once, and each mutant is planted in a fork of
that process, so that it costs some tens of milliseconds; only tests that reach the changed function run.

``pip install cosmic-ray`` (8.7 was used), then in the repository's root::

    python benchmarks/mutants.py --results mutants.jsonl [--only spec.laws] [--seconds 3] [--list]

Results are added to the file as they come, and mutants found there are not judged again: a run can be stopped
and continued. The tests' seconds stand in ``F.usual``; remove that file when tests have changed.
``--again`` judges the survivors once more, ``--list`` only prints what the file says.
"""

import argparse
import json
import os
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from mutation.children import Say, in_child
from mutation.judging import KILLED, LEFT, SURVIVED, Judge, Judged, Usual
from mutation.making import mutants_of

SCALAR, TENSORS = "test_mutants_scalar.py", "test_mutants_tensors.py"
MANAGERS = "test_mutants_rules*.py"
SAMPLING = ("test_spec_models.py", "test_spec_sampling.py", SCALAR)
CHAINS = ("test_spec_sampling.py", "test_spec_speculation.py", "test_spec_steps.py", SCALAR)
TREES = ("test_spec_draft_trees.py", "test_spec_trees.py", SCALAR)
ROWS = (
    "test_row_laws.py",
    "test_batch_checks.py",
    "test_batch_of_laws.py",
    "test_generation_contracts.py",
    "test_bad_batches.py",
    "test_bad_steps.py",
    "test_mutants_batches.py",
    "test_mutants_row_laws.py",
    TENSORS,
)
RULES = ("test_rules.py", "test_rules_silence.py", "test_block_manager_run.py", "test_hunted_*.py", MANAGERS)
DECODERS = (
    "test_decoder_features.py",
    "test_decoder_serving.py",
    "test_decoder_sessions.py",
    "test_mutants_decoders.py",
    "test_mutants_serving.py",
)
DECODER_CHECKERS = ("test_mutants_decoder_*.py", "test_decoder_features.py")
STORES = ("test_mutants_store*.py", "test_kv_store.py", "test_slot_pools.py", "test_store_frames.py")
ATTENTION = (
    "test_mutants_attention_checkers.py",
    "test_mutants_attention_parts.py",
    "test_attention_cases.py",
    "test_attention_suite.py",
    "test_attention_scores.py",
)
SUITES = ("test_mutants_suites.py", "test_announcing.py", "test_standing.py", SCALAR)

TESTS: dict[str, tuple[str, ...]] = {
    "spec.laws": CHAINS,
    "spec.speculation": CHAINS,
    "spec.sampling": SAMPLING,
    "spec.processors": SAMPLING,
    "spec.tree_verification": TREES,
    "spec.tree_steps": TREES,
    "spec.steps": CHAINS,
    "spec.block_verification": CHAINS,
    "spec.row_laws": ROWS,
    "spec.attention": ("test_spec_attention*.py", TENSORS),
    "spec.attention_bound": ("test_mutants_attention_bound.py", "test_spec_attention_bound.py"),
    "spec.cache": ("test_spec_cache.py", SCALAR),
    "spec.prefix": ("test_spec_prefix.py", SCALAR),
    "spec.draft_trees": TREES,
    "spec.requests": ("test_spec_requests.py", SCALAR),
    "spec.models": SAMPLING,
    "spec.verdicts": SUITES,
    "spec.philox": ("test_philox.py", TENSORS),
    "spec.attention_arguments": ("test_spec_attention*.py", TENSORS),
    "spec.batch_checks": ROWS,
    "spec.batch_parts": ROWS,
    "spec.generation_contracts": ROWS,
    "spec.verifiers": ("test_mutants_verifiers.py",),
    "spec.capabilities": ("test_attention_cases.py", "test_strategies.py", "test_targets.py", *SUITES),
    "spec.announcing": SUITES,
    "spec.contracts": (*SUITES, "test_rules.py"),
    "spec.deviations": ("test_deviations.py",),
    "spec.claims": SUITES,
    "spec.calling": ("test_mutants_verifiers.py",),
    "spec.tensor_checks": ROWS,
    "spec.number_kinds": ("test_bad_batches.py",),
    "spec.suites": SUITES,
    "spec.stopwatch": ("test_stopwatch.py", *SUITES),
    "spec.frames": ("test_frames.py", "test_store_frames.py"),
    "spec.decoder_contract": DECODERS,
    "spec.decoders": DECODERS,
    "spec.serving": DECODERS,
    "spec.sessions": DECODERS,
    "spec.session_models": DECODERS,
    "spec.shown_tokens": DECODERS,
    "spec.shown_numbers": ("test_mutants_shown_numbers.py", "test_probed_words.py"),
    "properties.rules.accounting": RULES,
    "properties.rules.content": RULES,
    "properties.rules.lifecycle": RULES,
    "properties.rules.prefix": RULES,
    "properties.rules.rule": RULES,
    "properties.rules.sharing": RULES,
    "properties.decoder_checks": DECODER_CHECKERS,
    "properties.decoder_expected": DECODER_CHECKERS,
    "properties.decoder_run": DECODER_CHECKERS,
    "properties.decoder_blame": DECODER_CHECKERS,
    "properties.judging": ("test_mutants_judging.py",),
    "properties.kv_store_shadow": STORES,
    "properties.kv_store_checks": STORES,
    "properties.kv_store_rows": STORES,
    "properties.kv_store_frames": STORES,
    "properties.kv_store_attention": STORES,
    "properties.kv_store_overflow": STORES,
    "properties.kv_store_tables": STORES,
    "properties.attention_rules": ATTENTION,
    "properties.attention_findings": ATTENTION,
    "properties.attention_merge": ATTENTION,
    "properties.attention_checks": ATTENTION,
}
"""Module -> its quick tests, in the order to judge; its doctests join them."""


def main() -> None:
    """Judge what isn't judged yet, and print the table."""
    options = _options()
    if not options.list:
        _judge(options.results, options)
    show(known(options.results), options.only or list(TESTS))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, required=True, help="file of JSON lines, read and added to")
    parser.add_argument("--only", nargs="*", default=[], help="names of modules without 'tokenlaw.'")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="processor seconds of tests for one mutant"
    )
    parser.add_argument("--examples", type=int, default=20, help="hypothesis examples of a property")
    parser.add_argument("--again", action="store_true", help="judge the survivors of the file again")
    parser.add_argument("--list", action="store_true", help="only print what the file says")
    return parser.parse_args()


def _judge(results: Path, options: argparse.Namespace) -> None:
    settings.register_profile(
        "mutants",
        derandomize=True,
        deadline=None,
        max_examples=options.examples,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutants")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = {key for key, one in known(results).items() if not options.again or one.outcome == KILLED}
    for name in options.only or TESTS:
        in_child(partial(_judge_module, name, done, results, options.seconds))


def _judge_module(name: str, done: set[str], results: Path, seconds: float, _: Say) -> None:
    """Collect the tests of a module, and judge its mutants."""
    usual = Path(f"{results}.usual")
    mutants = [one for one in mutants_of(f"tokenlaw.{name}", source_of(name)) if one.key not in done]
    if not mutants:
        return
    modules = frozenset(f"tokenlaw.{one}" for one in TESTS)

    def tell(judged: Judged) -> None:
        with results.open("a") as lines:
            lines.write(json.dumps(asdict(judged)) + "\n")

    def remember(measured: dict[str, Usual]) -> None:
        unfinished = Path(f"{usual}.new")
        unfinished.write_text(json.dumps({test: asdict(one) for test, one in measured.items()}))
        unfinished.replace(usual)

    judge = Judge(mutants, modules, tell, remember, seconds, _read_usual(usual))
    code = pytest.main(_arguments(name, str(path_of(name))), plugins=[judge])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"pytest ended with {code} for {name}")


def path_of(name: str) -> Path:
    """Where a module lies; its name as in `TESTS`."""
    return Path(str(import_module(f"tokenlaw.{name}").__file__))


def source_of(name: str) -> str:
    """Text of a module."""
    return path_of(name).read_text()


def _arguments(name: str, file: str) -> list[str]:
    """No conftest: it chooses another profile of hypothesis."""
    tests = [str(path) for pattern in TESTS[name] for path in sorted(Path("tests").glob(pattern))]
    quiet = ["-q", "-s", "--assert=plain", "--tb=native", "-W", "ignore", "-m", "not slow"]
    plain = ["--noconftest", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider"]
    return [*quiet, *plain, "-p", "_hypothesis_pytestplugin", "--doctest-modules", file, *tests]


def _read_usual(path: Path) -> dict[str, Usual]:
    if not path.exists():
        return {}
    stored = json.loads(path.read_text())
    return {
        name: Usual(one["seconds"], [(module, place) for module, place in one["places"]])
        for name, one in stored.items()
    }


def known(path: Path) -> dict[str, Judged]:
    """What the file says, the last word on each mutant."""
    if not path.exists():
        return {}
    judged = (Judged(**json.loads(line)) for line in path.read_text().splitlines())
    return {one.key: one for one in judged}


def show(judged: dict[str, Judged], names: list[str]) -> None:
    """Print the figures of these modules as they are today, then whatever wasn't killed."""
    print("| module | mutants | judged | killed | survivors | left out |")
    print("| --- | --: | --: | --: | --: | --: |")
    rows, others = [], []
    for name in names:
        keys = [one.key for one in mutants_of(f"tokenlaw.{name}", source_of(name))]
        mine = [judged[key] for key in keys if key in judged]
        outcomes = [one.outcome for one in mine]
        rows.append([len(keys), len(mine), *(outcomes.count(one) for one in (KILLED, SURVIVED, LEFT))])
        print(f"| `{name}` | {' | '.join(map(str, rows[-1]))} |")
        others += [one for one in mine if one.outcome != KILLED]
    print(f"| together | {' | '.join(str(sum(column)) for column in zip(*rows, strict=True))} |")
    for one in others:
        print(f"{one.outcome}: {one.key.removeprefix('tokenlaw.')} [{one.place}]")


if __name__ == "__main__":
    main()
