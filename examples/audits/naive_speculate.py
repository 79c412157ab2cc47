"""naive-speculate: ``speculative_sampling``, probabilities of one row a call, torch's global random numbers.

The package asks for Python 3.14, but this one file of it doesn't need it: it is loaded alone, without the
package around it. A row without drafts is not expressible: the function takes a minimum over the drafts.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from torch import Tensor

from examples.audits.packages import installed_version
from tokenlaw.impl.adapters.verify_rows import RowByRow, VerifyRow
from tokenlaw.spec.contracts import VERIFIER, ContractError, Implementation

PACKAGE = "naive-speculate"


def speculative_sampling_verifier() -> RowByRow:
    """A `Verifier` around ``speculative_sampling``."""
    sampling = _function()

    def step(row: VerifyRow) -> Sequence[int]:
        if not len(row.drafts):
            raise ValueError("naive-speculate: speculative_sampling needs at least one draft in every row")
        accepted, token = sampling(row.target.float(), row.draft.float(), row.drafts)
        return [*row.drafts[: int(accepted)].tolist(), int(token)]

    return RowByRow(step)


def _function() -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """``naive_speculate.speculate.utils.speculative_sampling``, its file loaded by path."""
    try:
        path = distribution(PACKAGE).locate_file("naive_speculate/speculate/utils.py")
    except PackageNotFoundError as error:
        raise ContractError(
            f"{PACKAGE} isn't installed; examples/audits/README.md says how to set up its environment"
        ) from error
    spec = spec_from_file_location("naive_speculate_utils", str(path))
    if spec is None or spec.loader is None:
        raise ContractError(f"{PACKAGE}: {path} can't be loaded; this adapter was written for version 0.1.0")
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] = module.speculative_sampling
    return found


IMPLEMENTATION = Implementation(
    name=PACKAGE,
    version=installed_version(PACKAGE),
    factories={VERIFIER: speculative_sampling_verifier},
    capabilities={VERIFIER: frozenset()},
    summary="naive_speculate.speculate.utils.speculative_sampling: one row a call",
)
