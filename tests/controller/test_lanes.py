"""Requests wait for their turn in the order they came, and make way for those that come first."""

import asyncio
from contextlib import ExitStack

from controller.workloads.lanes import Lane


class Road:
    """Requests on a lane that end when they are told to."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.under_way: list[int] = []
        self.ends: dict[int, asyncio.Event] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def come(self, *numbers: int) -> None:
        for number in numbers:
            self.ends[number] = asyncio.Event()
            self.tasks[number] = asyncio.create_task(self._drive(number))
        await self._rest()

    async def end(self, number: int) -> None:
        self.ends[number].set()
        await self._rest()

    async def give_up(self, number: int) -> None:
        self.tasks[number].cancel()
        await self._rest()

    async def _drive(self, number: int) -> None:
        async with self.lane.turn():
            self.under_way.append(number)
            try:
                await self.ends[number].wait()
            finally:
                self.under_way.remove(number)

    async def _rest(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def __aenter__(self) -> "Road":
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def test_so_many_are_under_way_and_the_others_follow_in_the_order_they_came() -> None:
    async with Road(Lane(2)) as road:
        await road.come(1, 2, 3, 4)
        assert road.under_way == [1, 2]
        await road.end(2)
        assert road.under_way == [1, 3]


async def test_while_others_come_first_a_few_go_on_and_then_all_of_them() -> None:
    async with Road(Lane(8)) as road:
        with ExitStack() as stack:
            stack.enter_context(road.lane.giving_way())
            stack.enter_context(road.lane.giving_way())
            await road.come(*range(10))
            assert road.under_way == [0, 1, 2, 3]
            await road.end(0)
            assert road.under_way == [1, 2, 3, 4]
        await road.come()
        assert road.under_way == [1, 2, 3, 4, 5, 6, 7, 8]


async def test_who_gives_up_leaves_its_turn_to_others() -> None:
    async with Road(Lane(1)) as road:
        await road.come(1, 2, 3)
        await road.give_up(2)
        await road.give_up(1)
        assert road.under_way == [3]


async def test_who_gives_up_just_when_its_turn_comes_leaves_it_to_others() -> None:
    async with Road(Lane(1)) as road:
        await road.come(1, 2, 3)
        road.ends[1].set()
        while not road.tasks[1].done():
            await asyncio.sleep(0)
        road.tasks[2].cancel()
        await road.come()
        assert road.under_way == [3]


async def test_who_gives_up_in_the_moment_before_its_turn_comes_gets_none() -> None:
    async with Road(Lane(1)) as road:
        await road.come(1, 2, 3)
        road.tasks[2].cancel()
        road.tasks[1].cancel()
        await road.come()
        assert road.under_way == [3]
        await road.end(3)
        await road.come(4)
        assert road.under_way == [4]
