"""What several test modules share; importable as ``support`` (see ``pythonpath`` in pyproject.toml)."""
