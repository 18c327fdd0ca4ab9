"""Python's MCP client, a line of JSON in for each call and a line of JSON out: the story itself is told in story.mjs."""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def answer(client: Client, question: dict):
    if question.get("tools"):
        return [tool.name for tool in (await client.list_tools()).tools]
    beside = {}
    if "inputResponses" in question:
        beside["input_responses"] = question["inputResponses"]
    if "requestState" in question:
        beside["request_state"] = question["requestState"]
    result = await client.call_tool(question["name"], question["arguments"], **beside)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['CLOUDHAL_AGENT_KEY']}"}
    http = httpx2.AsyncClient(headers=headers, timeout=60)
    door = streamable_http_client(f"{os.environ['CLOUDHAL_URL']}/mcp", http_client=http)
    async with Client(door) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                said = await answer(client, json.loads(line))
            except Exception as error:  # whatever the client raises is its answer
                said = {"raised": f"{type(error).__name__}: {error}"}
            print(json.dumps(said), flush=True)


asyncio.run(main())
