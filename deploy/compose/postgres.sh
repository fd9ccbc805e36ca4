#!/bin/sh
# Runs once, when the database is made: a role that owns its database and may not step over row-level security.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username postgres <<'SQL'
CREATE ROLE holdfast LOGIN PASSWORD :'password' NOSUPERUSER NOBYPASSRLS;
CREATE DATABASE holdfast OWNER holdfast;
\connect holdfast
CREATE EXTENSION vector;
SQL
