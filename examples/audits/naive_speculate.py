"""naive-speculate: ``speculative_sampling``, probabilities of one row a call, torch's global random numbers.

The package asks for Python 3.14, but the one file that is asked here doesn't need it: it is loaded alone,
without the package around it. The function takes a minimum over the drafts, so a row without any can't be
given to it. Such a row is a step without speculation; the adapter draws its token from the target's law,
which says nothing about the package.
"""

from collections.abc import Sequence
from typing import Any

import torch

from examples.audits.packages import installed_version, package_file
from tokenlaw.impl.adapters.verify_rows import RowByRow, VerifyRow
from tokenlaw.spec.contracts import VERIFIER, Implementation

PACKAGE = "naive-speculate"


def speculative_sampling_verifier() -> RowByRow:
    """A `Verifier` around ``speculative_sampling``."""
    sampling = _speculative_sampling()

    def step(row: VerifyRow) -> Sequence[int]:
        if not len(row.drafts):
            return [int(torch.multinomial(row.target[0], 1))]
        accepted, token = sampling(row.target.float(), row.draft.float(), row.drafts)
        return [*row.drafts[: int(accepted)].tolist(), int(token)]

    return RowByRow(step)


def _speculative_sampling() -> Any:
    """The function, from its file alone."""
    return package_file("naive_speculate/speculate/utils.py", PACKAGE).speculative_sampling


IMPLEMENTATION = Implementation(
    name=PACKAGE,
    version=installed_version(PACKAGE),
    factories={VERIFIER: speculative_sampling_verifier},
    capabilities={VERIFIER: frozenset()},
    summary="naive_speculate.speculate.utils.speculative_sampling: one row a call",
)
