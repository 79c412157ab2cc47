"""Exact laws of unmodified programs, without sampling."""
