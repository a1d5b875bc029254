"""One BLAS thread for NumPy's bundled OpenBLAS.

On shared cores its threads spin for each other: encoding one text at a time was
ten times slower with two threads than with one (2 cores, 4 busy processes).
"""

from __future__ import annotations

import ctypes
import logging
from pathlib import Path

import numpy as np

logger = logging.getLogger(__name__)

_NAMES = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")


def use_one_thread() -> bool:
    """Limit this process; returns whether a bundled OpenBLAS was found (another BLAS is left alone)."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in sorted(folder.glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(path))  # already loaded by NumPy: the same library, not a second copy
        except OSError as error:
            logger.debug("BLAS at %s cannot be opened: %s", path.name, error)
            continue
        for name in _NAMES:
            setter = getattr(library, name, None)
            if setter is not None:
                setter(ctypes.c_int(1))
                return True
    return False
