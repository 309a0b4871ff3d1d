"""The reference application: a game's payments and matches, and the provider that settles them.

It is a user of Redrive like any other: it reaches the package by public names only. The demo runs one night
of it; the fault harness runs the same jobs.
"""
