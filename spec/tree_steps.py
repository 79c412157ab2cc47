"""One whole step with a tree of drafts by exact enumeration."""

from tokenlaw.spec.draft_trees import ROOT, Parents, SiblingLaw, context_of, drawn_trees
from tokenlaw.spec.laws import Number, Tokens, collect
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.speculation import StepOutcome
from tokenlaw.spec.tree_verification import TreeRule


def tree_step_law(
    rule: TreeRule[Number],
    parents: Parents,
    *,
    target: LanguageModel[Number],
    draft: LanguageModel[Number],
    prompt: Tokens,
    siblings: SiblingLaw[Number],
) -> dict[StepOutcome, Number]:
    """Joint law of the accepted length and the emitted tokens of one step.

    By definition: the tree's tokens are drawn from the draft model, the target model gives a law behind the
    root and behind each node, the rule decides. The step is exact if, and only if, its completed law
    (`tokenlaw.spec.steps.completed_law`) is target-only, for one token more than the tree is deep.

    Parameters
    ----------
    rule : how the tree is verified.
    parents : the shape of the tree.
    target, draft : the models; they see the prompt and the tokens on the path from the root.
    prompt : tokens so far.
    siblings : how siblings are drawn. A rule for drawn siblings is exact only with its own way.

    Examples
    --------
    Two children that are drawn without and with replacement, and verified without:

    >>> from fractions import Fraction
    >>> from tokenlaw.spec.draft_trees import with_replacement, without_replacement
    >>> from tokenlaw.spec.tree_verification import verification_without_replacement
    >>> def target(tokens): return Fraction(0), Fraction(1, 2), Fraction(1, 2)
    >>> def draft(tokens): return Fraction(3, 4), Fraction(0), Fraction(1, 4)
    >>> models = {"target": target, "draft": draft, "prompt": ()}
    >>> for siblings in (without_replacement, with_replacement):
    ...     step = tree_step_law(verification_without_replacement, (-1, -1), **models, siblings=siblings)
    ...     print(sum(weight for outcome, weight in step.items() if outcome.tokens[0] == 2))
    1/2
    5/16
    """
    law: list[tuple[StepOutcome, Number]] = []
    for tokens, weight in drawn_trees(parents, draft=draft, prompt=prompt, siblings=siblings).items():
        contexts = [context_of(node, tokens, parents, prompt) for node in range(ROOT, len(parents))]
        verified = rule(
            tokens,
            parents,
            target=[target(context) for context in contexts],
            draft=[draft(context) for context in contexts],
        )
        law += [
            (StepOutcome(len(outcome.path), outcome.tokens), weight * probability)
            for outcome, probability in verified.items()
        ]
    return collect(law)
