"""Tests of the care of data: backups, export and import, erasing tenants, rotation of keys."""
