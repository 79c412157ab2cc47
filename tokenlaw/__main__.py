"""``python -m tokenlaw`` is the command line."""

from tokenlaw.cli import run

if __name__ == "__main__":
    run()
