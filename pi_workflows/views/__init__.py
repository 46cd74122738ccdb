"""What people read: run views, pages, lists, one value, counts, and what a runner goes on from.

Every function takes `Read`, so that one document comes from one consistent read, and the facts
about live processes that no database holds. Nothing here knows a socket, and nothing writes.
"""
