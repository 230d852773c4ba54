"""The functions of the conformance suite as a web server: FastAPI under uvicorn."""

import asyncio
import os
import signal
import sys

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

app = FastAPI()
_produced = 0


def events(items):
    async def body():
        async for item in items:
            yield "".join(f"data: {line}\n" for line in item.split("\n")) + "\n"

    return StreamingResponse(body(), media_type="text/event-stream")


@app.get("/health")
async def health():
    return "well"


@app.post("/echo")
async def echo(request: Request):
    return Response(await request.body(), media_type="application/json")


@app.post("/nothing")
async def nothing():
    return None


@app.post("/add")
async def add(request: Request):
    params = await request.json()
    return params["a"] + params.get("b", 2)


@app.post("/brief")
async def brief(request: Request):
    await asyncio.sleep((await request.json())["ms"] / 1000)
    return "whole"


@app.post("/count")
async def count(request: Request):
    n = (await request.json()).get("n", 3)

    async def items():
        for i in range(n):
            yield f"item {i}"

    return events(items())


@app.post("/step_by_step")
async def step_by_step(request: Request):
    """Continues after an item when the file with the item's number exists."""
    params = await request.json()

    async def items():
        for i in range(params.get("n", 3)):
            yield str(i)
            while not os.path.exists(os.path.join(params["folder"], str(i))):
                await asyncio.sleep(0.01)

    return events(items())


@app.post("/sleeper")
async def sleeper():
    async def items():
        try:
            yield "asleep"
            await asyncio.sleep(60)
        finally:
            print("cleaned up")

    return events(items())


@app.post("/breaks_later")
async def breaks_later():
    async def items():
        yield "1"
        await asyncio.sleep(0.05)
        raise ValueError("later")

    return events(items())


@app.post("/much")
async def much(request: Request):
    params = await request.json()

    async def items():
        for _ in range(params["n"]):
            yield "x" * params["size"]

    return events(items())


@app.post("/flood_large")
async def flood_large(request: Request):
    n = (await request.json()).get("n", 1000)

    async def items():
        global _produced
        for i in range(n):
            _produced = i + 1
            yield "x" * 65_536

    return events(items())


@app.get("/produced")
async def produced():
    return _produced


@app.post("/large_result")
async def large_result(request: Request):
    return PlainTextResponse("x" * (await request.json())["n"])


@app.post("/large_item")
async def large_item(request: Request):
    n = (await request.json())["n"]

    async def items():
        yield "fine"
        yield "x" * n

    return events(items())


@app.post("/prints")
async def prints():
    print("to stdout", flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    return None


@app.post("/exits")
async def exits():
    os._exit(3)


@app.post("/segfaults")
async def segfaults():
    os.kill(os.getpid(), signal.SIGSEGV)
    await asyncio.sleep(5)


@app.post("/killed")
async def killed():
    os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(5)


@app.post("/crashes_after_an_item")
async def crashes_after_an_item():
    async def items():
        yield "one"
        await asyncio.sleep(0.05)
        os._exit(4)

    return events(items())


@app.api_route("/seen/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def seen(request: Request):
    """Returns the request as it arrived."""
    body = await request.body()
    headers = [[name.decode("latin1"), value.decode("latin1")] for name, value in request.headers.raw]
    return {
        "method": request.method,
        "path": request.scope["raw_path"].decode("latin1"),
        "query": request.scope["query_string"].decode("latin1"),
        "headers": headers,
        "body": body.decode("latin1"),
    }


@app.get("/status/{code}")
async def status(code: int):
    return JSONResponse({"so": code}, status_code=code, headers={"X-Own": "yes", "Set-Cookie": "a=b"})


@app.get("/environment")
async def environment():
    return dict(os.environ)


@app.get("/lines")
async def lines():
    async def body():
        for text in ['{"a": 1}', "not json", "[1, 2]"]:
            yield text + "\n"

    return StreamingResponse(body(), media_type="application/x-ndjson")


@app.get("/pieces")
async def pieces():
    async def body():
        for text in ["eins ", "zwei\n", "drü"]:
            yield text
            await asyncio.sleep(0.01)

    return StreamingResponse(body(), media_type="text/plain")


@app.get("/bytes")
async def raw():
    return Response(bytes(range(256)), media_type="application/octet-stream")


@app.get("/named")
async def named():
    async def body():
        yield ": a comment\n\n"
        yield "retry: 10\n\n"
        yield 'event: delta\nid: 7\ndata: {"x": 1}\n\n'
        yield "data: two\ndata: lines\n\n"
        yield "data: plain\n\n"

    return StreamingResponse(body(), media_type="text/event-stream")
