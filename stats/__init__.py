"""Evidence about probability laws (issue 3 fills this package)."""
