"""Clients of the server.

A blocking one, one for trio and one for asyncio, over the same state without a socket: they come
back when the connection is lost, repeat what was not answered, and keep mirrors of what they watch.

    from pi_workflows.client.blocking import Client
    from pi_workflows.client.endpoint import Endpoint

    def follow(endpoint: Endpoint, run_id: str) -> None:
        with Client(endpoint) as client, client.watch_run(run_id) as feed:
            for mirror, change in feed:
                if mirror.view is not None and not mirror.is_stale:
                    print(mirror.revision, mirror.view["display"], sorted(change.targets))

With `asyncio_client` and `trio_client` it is `open_client`, `async with` and `async for`:

    async def follow_async(endpoint: Endpoint, run_id: str) -> None:
        async with asyncio.TaskGroup() as group:
            client = await open_client(group, endpoint)
            async with client.watch_run(run_id) as feed:
                async for mirror, change in feed:
                    print(mirror.revision, change.is_end)
            client.close()
"""
