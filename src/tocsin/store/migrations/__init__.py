"""Migrations of the database schema; `HEAD` is the version that this tocsin works with."""

__all__ = ["HEAD", "VERSION_TABLE"]

HEAD = "0007"
"""The newest revision. Revisions are numbers in order, so that a newer store is recognised without Alembic."""

VERSION_TABLE = "tocsin_version"
