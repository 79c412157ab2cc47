"""What is checked: reference implementations and adapters to real engines."""
