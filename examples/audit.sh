#!/bin/sh
# Audits the targets named, or the reference (must hold) and torch's paged attention (known to be refuted).
# Ends with 0 when the tool itself worked, whatever the verdicts: a refutation is a finding, not a failure.
tokenlaw=${TOKENLAW:-tokenlaw}

audit() {
    "$tokenlaw" audit "$1"
    status=$?
    if [ "$status" -gt 2 ]; then
        exit "$status"
    fi
}

if [ "$#" -gt 0 ]; then
    for target in "$@"; do audit "$target"; done
    exit 0
fi

audit reference
if [ "$status" -ne 0 ]; then
    echo "The reference did not hold: this is a fault of tokenlaw itself." >&2
    exit 4
fi
audit torch-paged-attention
