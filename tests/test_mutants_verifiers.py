"""What mutation testing of what is taken for a verifier found untested."""

import functools
from typing import Any

import pytest
import torch

from tokenlaw.spec.calling import accepts
from tokenlaw.spec.contracts import VERIFIER, ContractError, Implementation
from tokenlaw.spec.verifiers import (
    FunctionVerifier,
    as_verifier,
    build_verifier,
    claim_of,
    is_verify_function,
    most_rows_of,
    precision_of,
    refusals_of,
    takes_batch,
    verifier_factory,
)


def verify(batch: Any, *, seed: int) -> Any:
    return batch, seed


class Verifies:
    """A verifier in the form of an object."""

    def verify(self, batch: Any, *, seed: int) -> Any:
        return batch, seed


class Declares(Verifies):
    """A verifier with these attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class OfABatch:
    """A class whose instances are made of a batch: no function."""

    def __init__(self, batch: Any, *, seed: int) -> None:
        pass


def test_what_is_meant_as_a_verifier_names_a_batch_first() -> None:
    functions: list[Any] = [verify, lambda batch: batch, lambda batch, more, *, seed: batch]
    others: list[Any] = [OfABatch, "batch", 3, min, lambda: 0, lambda rows, batch: 0]
    assert all(map(takes_batch, functions))
    assert not any(map(takes_batch, others))


def test_a_verify_function_takes_a_batch_and_a_seed_by_name() -> None:
    others: list[Any] = [
        OfABatch,
        lambda batch: batch,
        lambda batch, **options: batch,
        lambda batch, more, *, seed: batch,
        lambda rows, *, seed: rows,
    ]
    assert is_verify_function(verify)
    assert not any(map(is_verify_function, others))


def test_what_has_no_signature_may_take_anything() -> None:
    assert accepts(dict, 1, 2, 3)
    assert accepts(verify, None, seed=0)
    assert not accepts(verify, None)


def test_a_function_declares_what_an_object_would() -> None:
    plain = FunctionVerifier(verify)
    found = plain.claims, plain.refuses, plain.most_rows, plain.precision
    assert found == ("textbook", frozenset(), None, torch.float32)
    told: Any = functools.partial(functools.partial(verify))
    told.claims, told.refuses, told.most_rows, told.precision = (
        "exact",
        frozenset({"greedy"}),
        7,
        torch.float64,
    )
    declared = FunctionVerifier(told)
    found = declared.claims, declared.refuses, declared.most_rows, declared.precision
    assert found == ("exact", frozenset({"greedy"}), 7, torch.float64)
    assert declared.__module__ == __name__  # of the innermost function, not functools
    assert declared.verify("rows", seed=3) == ("rows", 3)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"verify": None}, "Declares is no verifier: it has no method verify"),
        (
            {"verify": lambda batch: batch},
            r"its verify takes \(batch\), but is called as verify\(batch, seed",
        ),
        ({"claims": "all"}, "it claims 'all'; a verifier claims one of textbook, block, exact, approximate"),
        ({"claims": ["exact"]}, r"it claims \['exact'\]"),
        ({"refuses": "greedy"}, "refuses is 'greedy'; it must be a set of names"),
        ({"refuses": 3}, "refuses is 3; it must be a set of names"),
        ({"refuses": ["greedy", 3]}, r"it refuses \[3\]; a verifier may refuse greedy, "),
        ({"refuses": [["greedy"]]}, r"it refuses \[\['greedy'\]\]"),
        ({"most_rows": 0}, "most_rows is 0; it must be a whole number from 1 on"),
        ({"most_rows": 1.0}, "most_rows is 1.0"),
        ({"most_rows": True}, "most_rows is True"),
        ({"precision": torch.float16}, "a verifier's precision is torch.float64 or torch.float32"),
    ],
)
def test_what_a_verifier_says_of_itself_is_checked(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=f"^mine: .*{message}"):
        as_verifier(Declares(**attributes), "mine")


def test_what_a_verifier_may_say_of_itself_is_taken() -> None:
    told = Declares(claims="block", refuses=["greedy", "ragged"], most_rows=1, precision=torch.float64)
    assert as_verifier(told, "mine") is told
    assert claim_of(told, "mine") == "block"
    assert refusals_of(told, "mine") == {"greedy", "ragged"}
    assert (most_rows_of(told, "mine"), precision_of(told, "mine")) == (1, torch.float64)
    silent = Declares()
    assert (claim_of(silent, "mine"), refusals_of(silent, "mine")) == ("textbook", frozenset())
    assert (most_rows_of(silent, "mine"), precision_of(silent, "mine")) == (None, torch.float32)


def test_a_class_is_a_factory_and_an_object_is_used_again() -> None:
    told = Declares()
    assert verifier_factory(Verifies) is Verifies
    for offered in (told, verify):
        factory = verifier_factory(offered)
        assert factory is not None
        assert factory() is offered
    assert [verifier_factory(other) for other in (OfABatch, int, 3, lambda config: config)] == [None] * 4


def test_a_verifier_is_built_afresh_or_missed_in_words() -> None:
    assert isinstance(build_verifier(Implementation("mine", "1.0", {VERIFIER: Verifies})), Verifies)
    with pytest.raises(ContractError, match="mine has no verifier factory; add one to audit it"):
        build_verifier(Implementation("mine", "1.0", {}))
