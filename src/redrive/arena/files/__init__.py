"""Both sides of a settlement from CSV files: reading, generating with an answer key, comparing."""

from __future__ import annotations

from redrive.arena.files.check import compare_files
from redrive.arena.files.import_night import night_from
from redrive.arena.files.readers import FileProblem, read_entries, read_payments
from redrive.arena.files.writers import write_pair

__all__ = ["FileProblem", "compare_files", "night_from", "read_entries", "read_payments", "write_pair"]
