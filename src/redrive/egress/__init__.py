"""The only door out of the house: which targets may be called, how they are called, and how calls are signed.

Cron targets, push subscriptions and failure webhooks leave through :class:`~redrive.egress.door.Door`, and
nothing else opens a connection that a user's URL names.
"""
