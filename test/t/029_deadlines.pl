# Option "timeout" covers all of a projection's code in a worker, including the
# key's expression and the function that clears the read model.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
fsync = off
EOC

# A time limit for the transactions of clients does not apply to workers.
if ($node->pg_version >= 17)
{
	$node->append_conf('postgresql.conf', 'transaction_timeout = 1s');
	$ENV{PGOPTIONS} = '-c transaction_timeout=0';
}
$node->start;
use_node($node);

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE keyed (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, last_log_seq bigint,
    PRIMARY KEY (tenant_id, id));
CREATE FUNCTION key_of(p jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p ? 'slow' THEN
        PERFORM pg_sleep(600);
    END IF;
    RETURN coalesce(p->>'key', 'none');
END $$;
SELECT projector_create('keyed', fold_columns => '{"n": "s.n + 1"}', targets => '{keyed}', key => 'key_of(e.payload)',
    event_types => '{Keyed}', options => '{"timeout": "100 ms", "max_attempts": 1}');
EOS
sql(q{SELECT projector_append('acme', 'a', 'Keyed', '{"slow": 1}'), projector_append('globex', 'b', 'Keyed', '{"key": "k"}')});
comes_true(q{SELECT count(*) = 1 FROM projector.outbox WHERE projection_name = 'keyed' AND status = 'dead'},
	'an event whose key takes too long is dead');
is(sql(q{SELECT error_code, aggregate_id FROM projector.failures WHERE projection_name = 'keyed'}), '57014|a',
	'and it is said why');
comes_true(q{SELECT count(*) = 1 FROM keyed WHERE id = 'k'}, 'another is applied');

# A call may take longer than a second, if its timeout is longer.
sql(<<'EOS');
CREATE TABLE patient (tenant_id text, id text);
CREATE FUNCTION take_time(e projector.event) RETURNS void LANGUAGE sql AS
    'SELECT pg_sleep(1.5); INSERT INTO patient VALUES (e.tenant_id, e.aggregate_id)';
SELECT projector_create('patient', handler => 'take_time', targets => '{patient}', event_types => '{Slow}',
    options => '{"timeout": "10 min", "max_attempts": 1}');
SELECT projector_append('acme', 'a', 'Slow', '{}');
EOS
comes_true('SELECT count(*) = 1 FROM patient', 'a call that takes less than its timeout is not cancelled');

sql(<<'EOS');
CREATE TABLE notes (tenant_id text, id text);
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.aggregate_id)';
CREATE FUNCTION clear_notes(tenant_id text) RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(600)';
CREATE FUNCTION clear_deaf(tenant_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(600);
EXCEPTION WHEN query_canceled THEN
    NULL;
END $$;
SELECT projector_create('notes', handler => 'note', targets => '{notes}', event_types => '{Noted}',
    options => '{"timeout": "50 ms", "max_attempts": 1, "clear": "clear_notes"}');
SELECT projector_append('acme', 'a', 'Noted', '{}');
EOS
comes_true('SELECT count(*) = 1 FROM notes', 'an event is applied');
foreach my $function (qw(clear_notes clear_deaf))
{
	sql(qq{SELECT projector_alter('notes', '{"options": {"clear": "$function"}}')});
	my $run = sql(q{SELECT projector_start_run('notes', 'acme', 'rebuild')});
	comes_true("SELECT state = 'failed' FROM projector.projection_runs WHERE id = $run",
		"a rebuild whose $function takes too long has failed");
	like(sql("SELECT error_message FROM projector.projection_runs WHERE id = $run"), qr/option "timeout"/,
		'and it is said why');
}
sql(q{SELECT projector_append('globex', 'c', 'Keyed', '{"key": "l"}')});
comes_true(q{SELECT count(*) = 1 FROM keyed WHERE id = 'l'}, 'the worker goes on');

# Slow code that stays below its timeout is not cancelled.  The sequence counts
# calls, even if they are rolled back.
sql(<<'EOS');
CREATE SEQUENCE calls;
CREATE TABLE lasting (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE handled (tenant_id text, id text);
CREATE FUNCTION last_long(n int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT n + 1 FROM nextval(''calls''), pg_sleep(2.5)';
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS
    'INSERT INTO handled SELECT e.tenant_id, e.aggregate_id FROM nextval(''calls''), pg_sleep(2.5)';
SELECT projector_create('lasting', fold_columns => '{"n": "last_long(s.n)"}', targets => '{lasting}', event_types => '{Long}');
SELECT projector_create('handled', handler => 'handle', targets => '{handled}', event_types => '{Long}');
SELECT projector_append('acme', 'a', 'Long', '{}');
EOS
comes_true('SELECT count(*) = 2 FROM (SELECT id FROM lasting UNION ALL SELECT id FROM handled) a', 'code that takes longer than a second is let finish');
is(sql('SELECT last_value FROM calls'), '2', 'and is called once');
$node->stop('fast');
done_testing();
