#!/bin/sh
# The image of PostgreSQL runs this once, when its data folder is empty. The service is not a superuser: it owns one database.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$DATABASE_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'END'
CREATE ROLE rushes LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'password';
CREATE DATABASE rushes OWNER rushes ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE rushes FROM PUBLIC;
END
