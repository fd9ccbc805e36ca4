"""The project store: durable text files of many tenants, by project and path, in a database."""
