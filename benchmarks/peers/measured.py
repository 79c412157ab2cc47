"""Rates of the first measurement, made with other code of the same criteria and of the same kinds of faults.

One line a fault, one word a criterion: a rate, ``.`` for never.
"""

_CRITERIA = (
    "V0 ratio",
    "V1 ratio",
    "V1 ratio own",
    "V1 golden",
    "V1 top-k",
    "V1 recovered",
    "vLLM V1 suite",
    "V2 wide",
    "V2 narrow",
    "vLLM V2 suite",
    "TV .008",
    "FI chain",
    "cosine",
    "HF",
    "KL",
    "DeepSpec-like",
    "naive first",
    "naive flat",
    "naive flat own",
)
_RATES = """
no_residual      1 1 1 . . 1 1 1 1 1 1 . 1 . 1 1 1 1 1
resid_abs        1 1 1 . 1 1 1 1 1 1 1 . 1 1 1 1 1 1 1
resid_swapped    1 1 1 . 1 1 1 1 1 1 1 . 1 1 1 1 1 1 1
resid_unnorm     1 1 1 . 1 1 1 1 1 1 1 . 1 . 1 1 1 1 1
ratio_inverted   1 1 1 . 1 . 1 1 1 1 1 1 1 1 1 1 1 1 1
accept_det       1 1 1 . . . 1 1 1 1 1 . 1 . 1 1 1 1 1
accept_always    1 1 1 . 1 . 1 1 1 1 1 . 1 1 1 1 1 1 1
sum_not_cumprod  . 1 1 1 1 . 1 1 1 1 . . . . . 1 1 1 1
no_stop          . . . 1 . . 1 . . . 1 1 . 1 . . . . .
bonus_draft      . . . . . . . 1 1 1 . 1 . . . 1 . 1 1
reuse_u          1 1 1 . . 1 1 1 1 1 1 . 1 . . 1 1 1 1
last_pos_always  . 1 1 . .80 . 1 1 1 1 . . . 1 . 1 . 1 1
tie_reject       . . . . . . . . . . 1 . . 1 . . . . .
p0_accept        . . . . 1 . 1 . . . . . 1 1 1 . . . .
last_vocab       1 .53 .53 . 1 .40 1 .05 1 1 . 1 . . .20 1 .40 .45 .45
fp16_cumsum      . . . . . 1 1 1 . 1 . . . . . . . . .
u_bf16           . . . . . . . . . . . . . . . . . . .
pos_shared_u     . 1 1 . . . 1 1 1 1 . . . . . 1 . 1 1
dup_rows         . . . . . 1 1 1 . 1 . . . . . . .02 .02 .02
off_by_one       . . . 1 1 1 1 . . . . 1 . 1 . 1 . . .
bonus_row_off    . . . . . . . . . . . 1 . . . 1 . . .
resid_row0       . . . . . 1 1 . . . . . . 1 . 1 . . .
ragged_stride    . . . . . . . . . . . . . . . . . . .
neighbour_q      . . . . . 1 1 . . . . . . . . . . . .
temp_q_ignored   . . . . . . . 1 . 1 . . . . . . . . .
temp_p_ignored   . . . . . . . 1 . 1 . . . . . . . . .
topk_q_raw       . . . . . . . . . . . . . . . . . . .
mixed_greedy     . . . . . . . . . . . . . . . . . . .
seed_corr_gumbel . . 1 . . . . . 1 1 1 . . . . . . . .98
draft_accept_u   . . 1 . . . . . 1 1 1 . . . . . . . 1
bias_1pct        1 .50 .45 . . .70 .85 1 .83 1 .47 1 . 1 . . .02 . .
bias_0.3pct      .40 .03 .05 . . .30 .32 . . . . 1 . 1 . . . . .
bias_0.1pct      . .03 .05 . . . .03 . . . . .40 . 1 . . . . .
ratio_x1.01      .40 .07 .10 . . . .07 . . . . . . . . . . . .
ratio_x1.003     . . . . . . . . . . . . . . . . . . .
"""


def _rate(word: str) -> float:
    return 0.0 if word == "." else float(word)


MEASURED: dict[str, dict[str, float]] = {
    fault: dict(zip(_CRITERIA, map(_rate, words), strict=True))
    for fault, *words in (line.split() for line in _RATES.strip().splitlines())
}
"""Fault -> criterion -> rate; its keys are the 35 kinds."""
