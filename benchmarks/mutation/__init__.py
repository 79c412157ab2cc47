"""Mutation testing in one process: cosmic-ray's operators, mutants planted in forked children."""
