"""What we do: one use case a file, one loop a duty, and the group committer that makes it durable."""

from redrive.service.access import Access, Caller
from redrive.service.service import Service, ServiceSettings
from redrive.service.work import Commit, Read, Work

__all__ = ["Access", "Caller", "Commit", "Read", "Service", "ServiceSettings", "Work"]
