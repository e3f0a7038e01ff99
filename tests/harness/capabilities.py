"""What root does as if it were any other user: files whose permissions forbid it cannot be read. Linux only."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

#: ``linux/capability.h``: its third version, and the two rights to read whatever the permissions say.
_VERSION_3 = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2

_Result = TypeVar("_Result")


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def bound_by_permissions(work: Callable[[], _Result]) -> _Result:
    """Do `work` in a thread that has no more rights than files' permissions give it, and neither have the threads that it starts."""

    def without() -> _Result:
        _drop()
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(without).result()


def _drop() -> None:
    """Give the rights up, for this thread alone; nothing to do for who is not root."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_VERSION_3, 0), (_Data * 2)()
    if libc.capget(ctypes.byref(header), data):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    both = 1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH
    data[0].effective &= ~both
    data[0].permitted &= ~both
    if libc.capset(ctypes.byref(header), data):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
