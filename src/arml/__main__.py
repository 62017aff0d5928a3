"""``python -m arml``."""

import sys

from arml.cli import main

if __name__ == "__main__":
    sys.exit(main())
