-- Refuse to drop a live projection's target or a column that it uses, and to
-- alter a target so that it can no longer be one.  projector.guard_ddl = off
-- disables this.
-- Tables: projections (read).
CREATE FUNCTION projector.guard_start() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_start';
CREATE FUNCTION projector.guard_drop() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_drop';
CREATE FUNCTION projector.guard_alter() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_alter';

-- A command is not refused for what was broken before it.
CREATE EVENT TRIGGER projector_guard_start ON ddl_command_start
    WHEN TAG IN ('DROP TABLE', 'ALTER TABLE', 'DROP SCHEMA', 'DROP OWNED',
                 'DROP TYPE', 'DROP DOMAIN', 'DROP COLLATION', 'DROP EXTENSION',
                 'ALTER TYPE')
    EXECUTE FUNCTION projector.guard_start();
CREATE EVENT TRIGGER projector_guard_drop ON sql_drop
    WHEN TAG IN ('DROP TABLE', 'ALTER TABLE', 'DROP SCHEMA', 'DROP OWNED',
                 'DROP TYPE', 'DROP DOMAIN', 'DROP COLLATION', 'DROP EXTENSION',
                 'ALTER TYPE')
    EXECUTE FUNCTION projector.guard_drop();
CREATE EVENT TRIGGER projector_guard_alter ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE')
    EXECUTE FUNCTION projector.guard_alter();
