"""What the simulated brokers live in: one clock, one source of chance, processes that stop and pause, a network between them.

Everything happens in the order of a virtual clock (milliseconds); the same seed is the same run. A process is a `Host` whose tasks are
generators: they yield what they wait for and are resumed with its outcome, never after their process ended and never while it is paused.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

Resume = Callable[[Any], None]
Task = Generator[Callable[[Resume], None], Any, Any]


class World:
    """The clock, chance, and how often what happened."""

    def __init__(self, seed: int, late: float) -> None:
        self._late = late
        self.now = 0.0
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.calm = False
        self.cut: set[tuple[int, int]] = set()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def after(self, delay: float, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now + delay, self._number, act))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, act = heapq.heappop(self._events)
            act()
        self.now = until

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def delay(self) -> float:
        """How long a message takes: mostly little, rarely longer than a session."""
        if not self.calm and self.chance(self._late):
            return self.random.uniform(20, 400)
        return self.random.uniform(0.3, 4)


class Host:
    """A machine with at most one process on it. `life` is another object for each process, None while there is none."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.id = number
        self.life: object | None = None
        self.paused = False
        self._held: list[Callable[[], None]] = []

    def spawn(self, task: Task) -> None:
        """Run `task` as part of the present process."""
        life = self.life

        def step(value: Any = None) -> None:
            if life is None or life is not self.life:
                return
            if self.paused:
                self._held.append(lambda: step(value))
                return
            try:
                wait = task.send(value)
            except StopIteration:
                return
            wait(step)

        step()

    def end(self) -> None:
        """The process is gone, with all that was in its memory."""
        self.life = None
        self.paused = False
        self._held.clear()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        held, self._held = self._held, []
        for act in held:
            self.world.after(0, act)

    def sleep(self, delay: float) -> Callable[[Resume], None]:
        return lambda resume: self.world.after(delay, lambda: resume(None))

    def send(self, target: "Host", deliver: Callable[[], None]) -> None:
        """Let `deliver` happen at `target`: late, twice, out of order, or never."""
        world = self.world
        copies = 1
        if not world.calm:
            copies = 0 if world.chance(0.02) else 2 if world.chance(0.02) else 1
        for _ in range(copies):
            world.after(world.delay(), lambda: self._arrive(target, deliver))

    def _arrive(self, target: "Host", deliver: Callable[[], None]) -> None:
        if (self.id, target.id) in self.world.cut or target.life is None:
            return
        if target.paused:
            target._held.append(lambda: self._arrive(target, deliver))
            return
        deliver()
