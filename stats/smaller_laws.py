"""Makes a pair of laws smaller while it still refutes: fewer drafts, tokens, contexts, settings, weights."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tokenlaw.spec.row_laws import OFF_TOP_K
from tokenlaw.stats.searched_laws import LawPair, Weights, law_of

_Edit = Callable[[LawPair], LawPair]
"""Gives a smaller pair, or the same one where it doesn't apply."""


def smaller(pair: LawPair, refutes: Callable[[LawPair], bool]) -> LawPair:
    """The smallest pair that single edits lead to, each of which refutes.

    Parameters
    ----------
    refutes : asked of every candidate; once it says no to all of them, the search for smaller ones ends.
    """
    while True:
        before = pair
        for edits in (_fewer_drafts, _fewer_tokens, _fewer_contexts, _plainer_settings, _smaller_weights):
            # The last places first: what is left out must not move those that follow.
            for edit in reversed(list(edits(pair))):
                candidate = edit(pair)
                if candidate != pair and refutes(candidate):
                    pair = candidate
        if pair == before:
            return pair


def _fewer_drafts(pair: LawPair) -> Iterator[_Edit]:
    for context in range(len(pair.target[1])):
        yield partial(_without_position, position=0, context=context)
    for position in range(1, pair.drafts):
        yield partial(_without_position, position=position)


def _without_position(pair: LawPair, *, position: int, context: int = 0) -> LawPair:
    if pair.drafts == 1:
        return pair

    def cut(table: Weights) -> Weights:
        first, *others = table[:position] + table[position + 1 :]
        return (first if len(first) == 1 else first[context : context + 1], *others)

    return replace(pair, target=cut(pair.target), draft=cut(pair.draft))


def _fewer_tokens(pair: LawPair) -> Iterator[_Edit]:
    return (partial(_without_token, token=token) for token in range(pair.vocabulary))


def _without_token(pair: LawPair, *, token: int) -> LawPair:
    if pair.vocabulary == 2:
        return pair

    def cut(table: Weights) -> Weights:
        # Where every token is a context of its own, that goes too.
        kept = [rows[:token] + rows[token + 1 :] if len(rows) == pair.vocabulary else rows for rows in table]
        return tuple(tuple(law_of(row[:token] + row[token + 1 :]) for row in rows) for rows in kept)

    return replace(pair, target=cut(pair.target), draft=cut(pair.draft))


def _fewer_contexts(pair: LawPair) -> Iterator[_Edit]:
    for side, table in (("target", pair.target), ("draft", pair.draft)):
        for position, rows in enumerate(table):
            for row in rows:
                yield partial(_with_rows, side=side, position=position, rows=(row,))


def _with_rows(pair: LawPair, *, side: str, position: int, rows: tuple[tuple[int, ...], ...]) -> LawPair:
    table: Weights = getattr(pair, side)
    if len(table[position]) == 1:
        return pair
    changed = (*table[:position], rows, *table[position + 1 :])
    return replace(pair, target=changed) if side == "target" else replace(pair, draft=changed)


def _plainer_settings(pair: LawPair) -> Iterator[_Edit]:
    yield partial(replace, own_drafter=False)
    yield partial(replace, close=False)
    yield partial(replace, top_k=OFF_TOP_K)
    yield partial(replace, temperature=1.0)


def _smaller_weights(pair: LawPair) -> Iterator[_Edit]:
    for side, table in (("target", pair.target), ("draft", pair.draft)):
        for position, rows in enumerate(table):
            for context, row in enumerate(rows):
                for token in range(len(row)):
                    for weight in (1, 0):
                        yield partial(
                            _with_weight,
                            side=side,
                            position=position,
                            context=context,
                            token=token,
                            weight=weight,
                        )


def _with_weight(
    pair: LawPair, *, side: str, position: int, context: int, token: int, weight: int
) -> LawPair:
    table: Weights = getattr(pair, side)
    row = table[position][context]
    changed = (*row[:token], weight, *row[token + 1 :])
    if row[token] <= weight or not any(changed):
        return pair
    rows = (*table[position][:context], changed, *table[position][context + 1 :])
    tables = (*table[:position], rows, *table[position + 1 :])
    return replace(pair, target=tables) if side == "target" else replace(pair, draft=tables)
