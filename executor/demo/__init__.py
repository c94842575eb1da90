"""`fenced demo`: two accidents that make a cron job pay twice, told while they happen to real processes."""

from executor.demo.story import run

__all__ = ["run"]
