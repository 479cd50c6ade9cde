-- Database users for the roles, one for each kind of access. Run it as a superuser on the service's own database before the first
-- `npm run migrate`, then set a password for each user: ALTER USER esim_service PASSWORD '…'.

-- npm run migrate: owns every table.
CREATE ROLE esim_owner LOGIN;
-- The role worker, with any WORKER_JOBS: acts as the owner, because it creates and drops the daily partitions.
CREATE ROLE esim_worker LOGIN IN ROLE esim_owner;
ALTER ROLE esim_worker SET role = 'esim_owner';
-- The roles api, admin and portal: rows only. It cannot create, alter or drop a table, nor disable a constraint or a trigger.
CREATE ROLE esim_service LOGIN;

-- BullMQ's migration creates its schema if it is missing, and PostgreSQL checks the right to do so before it looks.
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO esim_owner', current_database()); END $$;
GRANT USAGE, CREATE ON SCHEMA public TO esim_owner;
CREATE SCHEMA IF NOT EXISTS bullmq AUTHORIZATION esim_owner;
GRANT USAGE ON SCHEMA public, bullmq TO esim_service;
ALTER DEFAULT PRIVILEGES FOR ROLE esim_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO esim_service;
ALTER DEFAULT PRIVILEGES FOR ROLE esim_owner GRANT USAGE, SELECT ON SEQUENCES TO esim_service;
