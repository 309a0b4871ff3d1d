"""Finds a worker by ``module:attribute``, for the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from redrive.worker.worker import Worker


def load(reference: str) -> Worker:
    """The :class:`Worker` named by ``module:attribute`` (default attribute: ``worker``).

    The working directory is searched first. Raises ValueError with what to write instead.
    """
    module_name, _, attribute = reference.partition(":")
    attribute = attribute or "worker"
    if not module_name:
        raise ValueError(f"{reference!r} must be module:worker, as in `redrive worker run settlement:worker`")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise ValueError(f"no module {module_name!r} in {here} or on the Python path") from error
        raise
    worker = getattr(module, attribute, None)
    if not isinstance(worker, Worker):
        names = [name for name, value in vars(module).items() if isinstance(value, Worker)]
        found = f"; it has {', '.join(names)}" if names else "; it has no worker at all"
        raise ValueError(f"{module_name}:{attribute} is not a redrive Worker{found}")
    return worker
