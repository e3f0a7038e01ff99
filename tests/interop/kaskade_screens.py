"""Shows a broker in kaskade, a user interface of Kafka for terminals, and prints what stands on its screens, as JSON. Words: the brokers, a topic.

It is the program itself, with a screen that nobody sees (Textual's `run_test`).
"""

import asyncio
import json
import sys

from kaskade.admin import LOADING_METRIC, KaskadeAdmin, ListTopics
from textual.widgets import DataTable

_WAIT_S = 30.0


def rows(table: DataTable[object]) -> list[list[str]]:
    """What stands in a table."""
    return [[str(cell) for cell in table.get_row_at(number)] for number in range(table.row_count)]


async def shown(servers: str, topic: str) -> dict[str, list[list[str]]]:
    """The list of topics, and the partitions and the groups of one of them."""
    app = KaskadeAdmin({"bootstrap.servers": servers}, refresh_interval=0)
    found: dict[str, list[list[str]]] = {}
    async with app.run_test(size=(200, 50)) as pilot:

        async def until_there(name: str) -> DataTable[object]:
            while not (tables := list(app.screen.query(f"#{name}").results(DataTable))) or not tables[0].row_count:
                await pilot.pause(0.05)
            return tables[0]

        async def read() -> None:
            table = await until_there("topics-table")
            # Numbers of records come after the names.
            while any(LOADING_METRIC in cell for row in rows(table) for cell in row):
                await pilot.pause(0.05)
            found["topics"] = rows(table)
            table.move_cursor(row=next(at for at, row in enumerate(found["topics"]) if row[0] == topic))
            topics = app.query_one(ListTopics)
            while not topics.check_action("describe", ()) or topics.current_topic.name != topic:
                await pilot.pause(0.05)
            table.focus()
            await pilot.press("d")
            for name in ("partitions", "group-offsets"):
                found[name] = rows(await until_there(f"{name}-table"))

        try:
            await asyncio.wait_for(read(), _WAIT_S)
        except asyncio.TimeoutError:
            sys.exit(
                f"Not all was shown within {_WAIT_S:g} s, but {found}; the screen: {[repr(each) for each in app.screen.walk_children()]}"
            )
    return found


print(json.dumps(asyncio.run(shown(*sys.argv[1:]))))
