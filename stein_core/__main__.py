"""python -m stein_core: the same as `steinlab`."""

import sys

from stein_core.cli.main import process

if __name__ == "__main__":
    sys.exit(process())
