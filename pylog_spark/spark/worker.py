"""What a Python process of Spark needs to be quick from its second task on.

Spark keeps its Python workers from task to task and collects garbage after each task (``pyspark/daemon.py``). What such a
collection looks at is almost only what was imported (some ten thousand objects of pyspark and pyarrow, more with pandas, which
pyarrow brings in: 20 to 40 ms), and the next task waits for it: with small micro-batches that is most of a task's time. The
processes in which Spark plans a read or write and commits a micro-batch are kept and cleaned in the same way.
"""

from __future__ import annotations

import gc
import sys

_modules = 0


def freeze_imports() -> None:
    """Tell the garbage collector not to look again at what is alive now, when something was imported since the last time.

    Such objects are freed as ever when nothing refers to them; only a cycle that is alive now would stay. A process that was
    forked later inherits both the mark and its effect.
    """
    global _modules
    if len(sys.modules) > _modules:
        _modules = len(sys.modules)
        gc.freeze()
