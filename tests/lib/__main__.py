"""`python -m lib NAME...` installs the named things; used by tests/run and by hand."""

import sys

from lib.install import ensure

ensure(*sys.argv[1:])
