"""Makes a Python process of Spark quick from its second task on.

Spark keeps its Python workers from task to task and collects garbage after each task (``pyspark/daemon.py``). Such a
collection visits mostly objects of imported modules (some ten thousand of pyspark and pyarrow, more with pandas, which
pyarrow imports: 20 to 40 ms), and the next task waits for it: with small micro-batches that is most of a task's time. The
processes in which Spark plans a read or write and commits a micro-batch are kept and cleaned in the same way.
"""

from __future__ import annotations

import gc
import sys

_modules = 0


def freeze_imports() -> None:
    """Exclude the objects that are alive now from later garbage collections, when a module was imported since the last call.

    They are still freed when nothing refers to them; only a cycle that is alive now would stay. A process that is
    forked later inherits both the count of modules and the exclusion.
    """
    global _modules
    if len(sys.modules) > _modules:
        _modules = len(sys.modules)
        gc.freeze()
