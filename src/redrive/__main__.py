"""``python -m redrive`` is the command ``redrive``."""

from __future__ import annotations

import sys

from redrive.cli import main

if __name__ == "__main__":
    sys.exit(main())
