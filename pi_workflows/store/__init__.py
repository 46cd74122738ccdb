"""The one place that touches SQLite: the live file, its log, content, receipts and leases.

Everything here is synchronous and runs on the thread that opened the store.
"""
