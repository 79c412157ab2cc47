"""What is true: contracts, attention, sampling, speculation, caches and verdicts.

Plain float64 torch, numpy and fractions. Nothing here imports another package of tokenlaw.
"""
