"""The path to blame for a wrong law, and what is said of its last token."""

import random
from fractions import Fraction

from support.program_proofs import proof
from support.sampled_programs import DRAFT, bonus_step, draw, target_law
from tokenlaw.spec.verdicts import Verdict

HALF = Fraction(1, 2)


def test_the_bonus_after_a_rejection_is_blamed() -> None:
    found = proof(bonus_step)
    assert found.verdict is Verdict.REFUTED
    assert "TV = 3/32 (" in found.message
    assert "then one more token" in found.message
    assert "without the last token of such paths the law would be exact" in found.message
    assert "sampled_programs.py:" in found.message
    assert found.statistics is not None
    assert (found.statistics["tv_at_least"], found.statistics["tv_at_most"]) == (3 / 32, 3 / 32)
    assert len(found.statistics["outcomes"]) == 10
    assert any("rejected" in words for words in found.statistics["path"])


def test_a_replacement_from_the_wrong_law_is_refuted_without_blaming_the_last_token() -> None:
    def resampled() -> list[int]:
        draft = draw(DRAFT)
        if random.random() < target_law([])[draft] / DRAFT[draft]:
            return [draft]
        return [draw(target_law([]))]

    found = proof(resampled)
    assert "TV = 1/8 (" in found.message
    assert "without the last token" not in found.message
    assert found.statistics is not None
    assert "rejected" in found.statistics["path"][0]


def test_the_next_token_of_a_program_that_goes_on_is_not_one_too_many() -> None:
    """The replacement is wrong; what follows it is drawn as it should be."""

    def two_rounds() -> list[int]:
        tokens: list[int] = []
        drafted = [draw(DRAFT) for _ in range(2)]
        for position, draft in enumerate(drafted):
            law = target_law(drafted[:position])
            if random.random() >= law[draft] / DRAFT[draft]:
                tokens.append(draw(law))
                break
            tokens.append(draft)
        while len(tokens) < 3:
            tokens.append(draw(target_law(tokens)))
        return tokens

    found = proof(two_rounds)
    assert "TV = 1/8 (" in found.message
    assert "token 2 replaces it\n  4. then token 2 was emitted\n" in found.message


def test_last_tokens_that_explain_half_of_a_fault_are_not_called_the_fault() -> None:
    """Without them TV would be 1/16."""

    def two_faults() -> list[int]:
        tokens = bonus_step()
        return tokens if random.random() < Fraction(7, 8) else [0, *tokens[1:]]

    found = proof(two_faults)
    assert "TV = 133/1024 (" in found.message
    assert "then token 2 was emitted" in found.message
    assert "without the last token" not in found.message


def test_what_the_spec_never_does_is_shown_first_and_by_its_shortest_path() -> None:
    def stray() -> list[int]:
        if random.random() < HALF:
            return [draw([HALF, HALF]), draw([HALF, HALF])]
        return [7]

    found = proof(stray, lambda tokens: [HALF, HALF])
    assert "a path that shows it (outcome [7], probability 1/2; impossible under the spec)" in found.message
    assert found.statistics is not None
    assert found.statistics["path"][0].startswith("u >= 0.5")
