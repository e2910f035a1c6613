"""Clocks for the tests of programs that are late, which no busy machine changes."""

import selectors
import time

from mor_ref.verify.candidates import own_process
from mor_ref.verify.candidates import program as program_module
from mor_ref.verify.candidates.protocol import Received


class ClockThatWaits:
    """Waits until so much was received, however long a busy machine takes for it."""

    def __init__(self, monkeypatch, wanted):
        self.wanted, self.received = wanted, bytearray()
        monkeypatch.setattr(program_module, "Received", self.noting)
        monkeypatch.setattr(program_module, "time", self)

    def noting(self, limit):
        received = Received(limit)
        self.received = received.text
        return received

    def monotonic(self):
        return time.monotonic() if self.wanted in self.received else 0.0


class ClockOfWaits:
    """Passes only while a program is waited for in vain, however long it takes to start."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        clock = self

        class Selector(selectors.DefaultSelector):
            def select(self, timeout=None):
                ready = super().select(timeout)
                clock.now += 0.0 if ready else timeout
                return ready

        monkeypatch.setattr(program_module.selectors, "DefaultSelector", Selector)
        for module in (own_process, program_module):
            monkeypatch.setattr(module, "time", self)

    def monotonic(self):
        return self.now
