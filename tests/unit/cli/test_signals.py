"""A signal to stop is never missed."""

import os
import signal
import threading

import pytest

from pylog_spark.cli.signals import StopSignal
from tests.harness.waiting import pause


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_another_thread_gets_ends_the_wait(number):
    with StopSignal() as stop:
        # As the kernel does when it gives the signal to another thread, or just before the wait begins: nothing interrupts it.
        thread = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), number))
        thread.start()
        assert stop.wait(60)
        thread.join()


def test_a_signal_before_the_wait_counts_and_none_does_not():
    before = signal.getsignal(signal.SIGTERM)
    with StopSignal() as stop:
        assert not pause(stop, 0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(60)
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_can_end_the_wait_as_a_signal_would():
    with StopSignal() as stop:
        thread = threading.Timer(0.05, stop.come)
        thread.start()
        assert stop.wait(60)
        thread.join()
