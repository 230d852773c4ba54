"""Functions that exceed their time limit and end when they are interrupted."""

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
