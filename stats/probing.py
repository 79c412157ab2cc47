"""Probing a verifier whose random numbers can be given: its law without sampling noise.

Every decision of a step has a threshold in a number that is given: a draft is accepted below its acceptance
probability, a token wins a race below its share of two tokens' probabilities. All thresholds of some small
kinds of rows are found, by a grid of numbers and by halving intervals together, and composed into the law of
a step, which is compared with the spec's. Chance has no part in it, and 20 evaluations a threshold replace
billions of samples. It can't see how an implementation makes its own random numbers: that is for sampling.
"""

import numpy as np
from jaxtyping import Bool

from tokenlaw.spec.generation_contracts import BLOCK, EXACT
from tokenlaw.spec.philox import derived_key
from tokenlaw.stats.guarded import Guarded
from tokenlaw.stats.probing_bounds import ROUNDINGS, Expected, expected, firm, one_hot
from tokenlaw.stats.probing_cases import Contexts, probed_scenarios
from tokenlaw.stats.probing_judge import Right, guesses_of
from tokenlaw.stats.probing_law import Found, difference
from tokenlaw.stats.probing_outcome import Probed, Told
from tokenlaw.stats.probing_patterns import ALONE, Patterns
from tokenlaw.stats.probing_questions import BELOW_ONE, Answers, Asker, Questions, Scouted
from tokenlaw.stats.probing_search import Guesses, Thresholds
from tokenlaw.stats.probing_shown import shown_composed, shown_thresholds
from tokenlaw.stats.probing_words import described
from tokenlaw.stats.scenario import Scenario, Tables

FINER = 2.0**-6
"""Thresholds are found this much more closely than rounding moves them."""

COMPOSED = 8
"""Roundings of a probability that a cell of the composed law may be off by, for each position: both laws
enter the decision and the residual, and the residual is divided by a sum of them."""

GRID, HALVINGS = 9, 6
"""Rows for a threshold: of the grid, and usually of the halving behind it."""


def probe(verifier: Guarded, told: Told, *, seed: int, device: str, rows: int) -> Probed:
    """Find the thresholds of as many kinds of rows as so many rows allow, until something is wrong.

    Parameters
    ----------
    verifier : with the capability ``uniforms``.
    told : what it says about itself, and what it's held to.
    seed, device : of the run.
    rows : to be verified at most; too few for one kind of rows find nothing.

    Raises
    ------
    ProtocolError, CrashError
        The verifier breaks the contract, or raises an exception.
    """
    found = Probed()
    for scenario in probed_scenarios(seed, told.refused):
        part = _affordable(scenario, told, rows - ALONE)
        if part is not None and not found.findings:
            before = verifier.rows
            _Probe(verifier, told, Tables.of(part, device), seed, found).run(rows)
            rows -= verifier.rows - before
    return found


def _affordable(scenario: Scenario, told: Told, rows: int) -> Scenario | None:
    """The first kinds, whose thresholds are usually found with so many rows; None if there is none."""
    races = (scenario.vocabulary - 1) * told.has_noise
    grid = GRID + 5 * (told.claims == EXACT)
    chosen = []
    for kind in scenario.kinds:
        sequences = scenario.vocabulary**kind.length
        questions = sequences * (kind.length + (kind.length + 1) * races)
        rows -= questions * (grid + HALVINGS) + sequences * (kind.length + 1 + 2**scenario.drafts)
        if rows < 0:
            break
        chosen.append(kind)
    return Scenario(scenario.name, tuple(chosen), scenario.share, scenario.deterministic) if chosen else None


class _Probe:
    """The probe of one scenario; writes into what was found."""

    def __init__(self, verifier: Guarded, told: Told, tables: Tables, seed: int, into: Probed) -> None:
        self._verifier, self._told, self._seed, self._into = verifier, told, seed, into
        self._contexts = Contexts.of(tables)
        self._asker = Asker(verifier, self._contexts, has_noise=told.has_noise, seed=seed)
        self._rounding, self._top = ROUNDINGS[told.precision], BELOW_ONE[told.precision]

    def run(self, rows: int) -> None:
        """Scout, search, compose, compare."""
        told, into, before, fine = self._told, self._into, self._verifier.rows, self._rounding * FINER
        jointly, contexts = told.claims == BLOCK, self._contexts
        rule = expected(contexts, told.claims, told.precision)
        scouted = Scouted.of(self._asker, firm(self._rounding))
        questions = scouted.questions(contexts, jointly=jointly, has_noise=told.has_noise)
        if told.claims != EXACT:
            questions = questions.of(~rule.doubtful(contexts, self._rounding)[questions.context])
        right = None if told.claims == EXACT else Right.of(questions, rule)
        thresholds = self._search(questions, rule)
        chosen = self._chosen(
            thresholds, self._wrong(thresholds, right), rows - (self._verifier.rows - before)
        )
        thresholds.halve(self._asker, chosen[questions.context], fine)
        into.thresholds += len(questions)
        into.inside += int(((thresholds.yes >= 0) & (thresholds.no <= 1)).sum())
        into.kinds += len(set(contexts.kinds[chosen]))
        self._judge(thresholds, right, chosen[questions.context])
        self._compose(Found.of(contexts, scouted, thresholds, jointly=jointly), thresholds, chosen)
        into.evaluations += self._verifier.rows - before

    @staticmethod
    def _wrong(thresholds: Thresholds, right: Right | None) -> Answers:
        """Questions whose answers can't be right; without a rule, those that have no threshold."""
        return right.wrong(thresholds) if right else thresholds.torn | thresholds.stray

    def _search(self, questions: Questions, rule: Expected) -> Thresholds:
        rules = [rule] if self._told.claims != EXACT else [rule, one_hot(self._contexts, self._rounding)]
        guesses = Guesses(guesses_of(questions, rules), self._rounding)
        generator = np.random.Generator(
            np.random.Philox(derived_key(self._seed, self._contexts.scenario.name, "order"))
        )
        return Thresholds.of(self._asker, questions, guesses, self._top, generator)

    def _chosen(self, thresholds: Thresholds, wrong: np.ndarray, rows: int) -> Bool[np.ndarray, " contexts"]:
        """Contexts whose thresholds are found closely: the kind that is most wrong, else all that fit."""
        kinds = self._contexts.kinds[thresholds.questions.context]
        count = len(self._contexts.scenario.kinds)
        if wrong.any():
            order = [int(np.bincount(kinds[wrong], minlength=count).argmax())]
        else:
            order = list(range(count))
        needed = np.bincount(kinds, thresholds.steps(self._rounding * FINER), minlength=count)
        patterns = np.bincount(self._contexts.kinds, minlength=count) * 2 ** self._contexts.draft.shape[1]
        costs = np.cumsum([needed[kind] + patterns[kind] for kind in order])
        return np.isin(
            self._contexts.kinds,
            [kind for kind, cost in zip(order, costs, strict=True) if cost + ALONE <= rows],
        )

    def _judge(self, thresholds: Thresholds, right: Right | None, close: Answers) -> None:
        """Note the threshold that is farthest off, and how many are wrong."""
        into, wrong, distance = self._into, self._wrong(thresholds, right), np.zeros(len(close))
        into.known = max(into.known, float(thresholds.widths[close].max(initial=0.0)))
        if right:
            distance = right.distance(thresholds)
            known = close & ~thresholds.torn
            into.distance = max(into.distance, float(distance[known].max(initial=0.0)))
            if not self._told.has_noise:
                into.allowed = max(into.allowed, float(right.slack()[known].max(initial=0.0)))
        if wrong.any():
            worst = int(np.argmax(np.where(wrong, 1 + np.minimum(distance, 1.0) + close, 0.0)))
            text = described(self._contexts, thresholds, worst, right, self._told.claims)
            count = f"{int(wrong.sum())} of {len(wrong)} thresholds are wrong."
            into.findings.append(f"{_capital(text)}. {count}")
            if right:
                into.shown += shown_thresholds(
                    self._contexts, thresholds, right, wrong, close, self._told.claims
                )

    def _compose(self, found: Found, thresholds: Thresholds, chosen: np.ndarray) -> None:
        """Compare the law that the thresholds of the chosen kinds add up to, and whole rows with it."""
        into, told, contexts = self._into, self._told, self._contexts
        known = np.isin(np.arange(len(chosen)), thresholds.questions.context)
        known[thresholds.questions.context[thresholds.torn | thresholds.stray]] = False
        if told.claims == EXACT and not known[chosen].all():
            return  # which has been told, and leaves nothing whole to compare
        chosen = chosen & known
        if not chosen.any():
            return
        if told.has_noise:
            apart = difference(contexts, found, chosen, told.claims)
            into.largest, into.tv = max(into.largest, apart.largest), max(into.tv, apart.tv)
            allowed = COMPOSED * (contexts.draft.shape[1] + 1) * self._rounding
            into.allowed = max(into.allowed, allowed)
            if apart.largest > allowed:
                completed = told.claims == EXACT
                into.findings.append(_capital(apart.words(contexts, completed=completed)))
                into.shown += shown_composed(contexts, apart, completed=completed)
        if not into.findings:
            patterns = Patterns.of(self._asker, found, chosen, self._top, self._seed)
            unlike = patterns.unlike(self._asker, found)
            into.findings += [f"{_capital(unlike)}."] if unlike else []


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
