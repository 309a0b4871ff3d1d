"""Redrive: failed-job recovery you can prove."""
