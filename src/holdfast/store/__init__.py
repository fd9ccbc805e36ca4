"""Durable text files for many tenants, kept by project and path in a database; one verb a file."""
