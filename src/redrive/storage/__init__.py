"""Where it is kept: one engine protocol, its executor and conformance suite, and three engines.

Engines (memory, sqlite, postgres) know selections and moves, never business events; ``execute`` applies a
batch of commands over any of them in one fixed order, and asks ``domain.decide`` what each one means.
"""
