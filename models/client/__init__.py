"""The client: a stack of thin layers (architecture, idea 6).

cache → budget → rate limit and concurrency → retry → OpenAI-compatible HTTP.
Each layer is a callable from :class:`models.client.call.Call` to
:class:`models.client.call.Reply` around the next one.
"""
