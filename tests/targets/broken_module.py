"""Fails to import."""

raise ImportError("no kernel\nfor this device")
