"""What may happen: the rules of a message's life, as pure functions and data.

Nothing here does I/O, reads a clock, draws a random number or knows SQL: time and jitter come in as
arguments, so that every rule can be tested, replayed and proved.
"""
