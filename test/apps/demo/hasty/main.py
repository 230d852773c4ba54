"""Functions that go over their time limit and obey."""

import asyncio
import time


def sleeps():
    try:
        time.sleep(600)
    finally:
        print("interrupted")


def sleeps_late():
    yield "one"
    time.sleep(600)


async def sleeps_async():
    try:
        await asyncio.sleep(600)
    finally:
        print("interrupted")
