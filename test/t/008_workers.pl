# Worker processes: events are applied without any call.  Whatever happens to a
# worker or in a handler, no event is lost, applied twice or out of order.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

# Workers do not poll (a long naptime), so every event must wake them.  Transaction
# settings in postgresql.conf must not affect workers; the sessions of this test
# use the defaults.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = 1h
fsync = off
max_worker_processes = 16
max_prepared_transactions = 5
default_transaction_isolation = serializable
default_transaction_read_only = on
EOC
$ENV{PGOPTIONS} = '-c default_transaction_isolation=read\ committed -c default_transaction_read_only=off';
$node->start;
use_node($node);

# One handler for all projections.  They differ in their options, and each
# receives the event type with its name.  The chain depends on the order and number
# of the events applied.  Table "trouble" says which event fails, and how.
$node->safe_psql('postgres', $CHAIN . <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE model (tenant_id text, projection text, id text, events bigint, total numeric, chain text,
    PRIMARY KEY (tenant_id, projection, id));
CREATE TABLE trouble (id text, sequence_number bigint, what text);
CREATE SEQUENCE calls_in_trouble;
CREATE FUNCTION recurse(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RETURN recurse(n + 1) + 1;
END $$;
CREATE FUNCTION apply_model(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    trouble text := (SELECT what FROM trouble t
        WHERE (t.id, t.sequence_number) = (e.aggregate_id, e.sequence_number));
BEGIN
    INSERT INTO model AS m VALUES (e.tenant_id, e.event_type, e.aggregate_id, 1, (e.payload->>'n')::numeric,
        md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, projection, id) DO UPDATE
    SET events = m.events + 1, total = m.total + excluded.total,
        chain = md5(m.chain || e.sequence_number);
    IF trouble IS NULL THEN
        RETURN;
    END IF;
    PERFORM nextval('calls_in_trouble');
    CASE trouble
    WHEN 'raise' THEN
        RAISE EXCEPTION 'not like this: "%"', e.aggregate_id;
    WHEN 'memory' THEN
        RAISE EXCEPTION 'no memory' USING ERRCODE = '53200';
    WHEN 'recurse' THEN
        PERFORM recurse(1);
    WHEN 'gate' THEN
        PERFORM pg_advisory_xact_lock_shared(1);
    WHEN 'lock' THEN
        PERFORM pg_advisory_lock(2);
    WHEN 'sleep' THEN
        PERFORM pg_sleep(600);
    WHEN 'sleep, catch' THEN
        BEGIN
            PERFORM pg_sleep(600);
        EXCEPTION WHEN query_canceled THEN
            NULL;
        END;
    END CASE;
END $$;
-- retries an hour apart, immediate retries, and a short timeout
SELECT projector_create('patient', handler => 'apply_model', targets => '{model}', event_types => '{patient}',
    options => '{"retry_base": "1 h", "retry_max": "2000 h", "shared_targets": true}');
SELECT projector_create('brisk', handler => 'apply_model', targets => '{model}', event_types => '{brisk}',
    options => '{"retry_base": "1 ms", "retry_max": "5 ms", "shared_targets": true}');
SELECT projector_create('quick', handler => 'apply_model', targets => '{model}', event_types => '{quick}',
    options => '{"retry_base": "1 h", "timeout": "1 s", "shared_targets": true}');

CREATE VIEW oracle AS
SELECT tenant_id::text, event_type::text AS projection, aggregate_id::text AS id, count(*) AS events,
       sum((payload->>'n')::numeric) AS total,
       chain(array_agg(sequence_number ORDER BY sequence_number)) AS chain
FROM projector.events GROUP BY 1, 2, 3;
CREATE VIEW difference AS
    (TABLE model EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE model);
CREATE VIEW workers AS
    SELECT * FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database();
CREATE VIEW at_gate AS
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND (classid, objid, objsubid) = (0, 1, 1);
EOS

# Append events: how many, then their type, tenant and aggregate.
sub append
{
	my ($n, $type, $tenant, $id) = @_;
	return sql("SELECT projector_append('$tenant', '$id', '$type', jsonb_build_object('n', n)) FROM generate_series(1, $n) n");
}

# Everything is applied, and equals the log.
sub is_exact
{
	my ($name) = @_;
	comes_true('NOT EXISTS (SELECT FROM projector.apply_outbox)', "$name: nothing is left to do");
	is(sql('TABLE difference'), '', "$name: the read model is what the log says");
	return;
}

sub set
{
	my ($setting) = @_;
	sql("ALTER SYSTEM SET $setting");
	$node->reload;
	return;
}

# A prepared transaction keeps the gate closed.
sub close_gate
{
	sql(q{BEGIN; SELECT pg_advisory_xact_lock(1); PREPARE TRANSACTION 'gate'});
	return;
}

sub open_gate
{
	sql(q{ROLLBACK PREPARED 'gate'});
	return;
}

# Which process waits at the gate?
sub worker_at_gate
{
	$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM at_gate') or die 'nobody came to the gate';
	return sql('SELECT pid FROM at_gate');
}

# ---- running ----

comes_true('(SELECT count(*) = 1 FROM workers)', 'a worker is started by itself');
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'projector launcher'}), '1', 'by a launcher');
append(3, 'patient', 't', 'first');
is_exact('first events');

# Its activity is visible, and the counters are right.
sql(q{INSERT INTO trouble VALUES ('gated', 2, 'gate')});
close_gate();
sql(q{BEGIN; SELECT projector_append('t', 'gated', 'patient', '{"n": 1}') FROM generate_series(1, 3);
	SELECT projector_append('t', 'other', 'patient', '{"n": 1}') FROM generate_series(1, 7); COMMIT});
my $pid = worker_at_gate();
is(sql('SELECT backend_type, application_name, state, query, wait_event_type FROM workers'),
	'projector worker|projector worker|active|projection "patient", tenant "t"|Lock',
	'pg_stat_activity shows what a worker is doing');
is(sql(q{SELECT w.pid, p.name, w.tenant_id, w.activity FROM projector.worker_activity() w JOIN projector.projections p USING (projection_id)}),
	"$pid|patient|t|applying", 'and so does shared memory');
sql(q{CREATE ROLE onlooker; GRANT USAGE ON SCHEMA projector TO onlooker; GRANT SELECT ON projector.status_by_tenant TO onlooker;
	 CREATE ROLE stranger; GRANT USAGE ON SCHEMA projector TO stranger});
is(sql(q{SET ROLE onlooker; SELECT worker_pid FROM projector.status_by_tenant WHERE projection_name = 'patient' AND tenant_id = 't'}), $pid,
	'a reader of the view sees which worker it is');
is(sql(q{SET ROLE stranger; SELECT count(*) FROM projector.worker_activity()}), '0', 'who may not read the view sees nothing');
is(sql(q{SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'held'), count(*) FILTER (WHERE status = 'processing'), count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'dead') FROM projector.outbox WHERE projection_name = 'patient' AND tenant_id = 't'}), '0|0|10|0|0',
	'items of a batch that runs are shown as such');
is(sql(q{SELECT count(*) = 10 FROM projector.apply_outbox}), 't', 'and all are still there');

# A cancel ends the batch, not the worker.
my $log = -s $node->logfile;
sql("SELECT pg_cancel_backend($pid)");
$node->wait_for_log(qr/ERROR:  canceling statement due to user request/, $log);
ok(1, 'a batch is cancelled');
$node->poll_query_until('postgres', "SELECT pid = $pid FROM workers WHERE wait_event_type = 'Lock'");
is(worker_at_gate(), $pid, 'by and by the same worker tries it again');
is(sql('SELECT max(attempt_count), count(*) FROM projector.apply_outbox'), '0|10', 'no attempt was counted');
is(sql('SELECT count(*) FROM projector.failures'), '0', 'nor a failure recorded');

# Terminated in the middle of a batch.
is(sql("SELECT pg_terminate_backend($pid, 20000)"), 't', 'a worker ends when told to, also in a handler');
isnt(worker_at_gate(), $pid, 'another takes over');
is(sql('SELECT max(attempt_count), count(*) FROM projector.apply_outbox'), '0|10', 'with nothing lost');
open_gate();
is_exact('cancelled and terminated');

# A lock that a handler takes is released with the batch.
$pid = sql('SELECT pid FROM workers');
sql(q{INSERT INTO trouble VALUES ('locking', 1, 'lock')});
append(1, 'patient', 't', 'locking');
is_exact('a handler that leaves a lock');
comes_true(q{NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 2)}, 'the lock is released');
is(sql('SELECT pid FROM workers'), $pid, 'by the same worker');

# ---- failures ----

# Eight attempts, with delays that double.  The test moves the clock.
my $listener = $node->background_psql('postgres');
$listener->query_safe('LISTEN projector_alert');
$log = -s $node->logfile;
sql(q{INSERT INTO trouble VALUES ('bad', 2, 'raise')});
append(4, 'patient', 't', 'bad');
append(2, 'patient', 't', 'good');
my $hours = 0;
foreach my $attempt (1 .. 8)
{
	comes_true("(SELECT attempt_count = $attempt FROM projector.outbox WHERE status IN ('failed', 'dead'))",
		"attempt $attempt");
	is(sql(qq{SELECT status, round(extract(epoch FROM next_attempt_at - last_failed_at) / 3600) - $hours
		FROM projector.outbox o JOIN projector.failures f USING (log_seq) WHERE status IN ('failed', 'dead')}),
		($attempt < 8 ? 'failed|' . 2**($attempt - 1) : 'dead|128'), 'is the last for a while');
	$hours = 2**$attempt;
	set("projector.clock_offset = '$hours h'") if $attempt < 8;
}
is(sql(q{SELECT string_agg(sequence_number || ' ' || status, ', ' ORDER BY log_seq) FROM projector.outbox}),
	'2 dead, 3 held, 4 held', 'after eight attempts the event is dead, and holds its aggregate');
is(sql('SELECT id, events FROM difference WHERE events IS NOT NULL ORDER BY 1, 2'), "bad|1\nbad|4", 'and nothing else');
$node->wait_for_log(qr/WARNING:  projection "patient": event 2 of aggregate "bad" of tenant "t": error_threshold/, $log);
$node->wait_for_log(qr/WARNING:  projection "patient": event 2 of aggregate "bad" of tenant "t": dead/, $log);
ok(1, 'the log has warnings');

# A session that listens is notified.  (psql shows notifications after a query.)
my $heard = '';
foreach my $try (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$heard .= $listener->query_safe('SELECT pg_sleep(0.1)');
	last if $heard =~ /"dead"/;
}
my @alerts = $heard =~ /notification "projector_alert" with payload "(.*)" received/g;
is(scalar @alerts, 2, 'two notifications');
foreach my $expected ([ 'error_threshold', 5 ], [ 'dead', 8 ])
{
	my $alert = shift @alerts;
	is(sql(qq{SELECT a->>'alert', a->>'projection', a->>'tenant_id', a->>'aggregate_id', a->>'event_type',
		a->'sequence_number', a->'error_count', a->>'error_code', a->>'error_message',
		(a->>'log_seq')::bigint = (SELECT log_seq FROM projector.failures) FROM (SELECT \$\$$alert\$\$::jsonb AS a) x}),
		"$expected->[0]|patient|t|bad|patient|2|$expected->[1]|P0001|not like this: \"bad\"|t",
		"one is about $expected->[0]");
}
$listener->quit;
sql('DELETE FROM trouble');
is(sql(q{SELECT projector_requeue('patient', 't', 'bad', 2)}), '(patient,t,bad,2)', 'once repaired, it is requeued');
is_exact('requeued');
is(sql('SELECT resolution, retry_count FROM projector.failures'), 'applied|7', 'and its failure is resolved');

# Errors that may be temporary get four times as many attempts.
sql(q{INSERT INTO trouble VALUES ('plain', 1, 'raise'), ('full', 1, 'memory'), ('deep', 1, 'recurse')});
append(2, 'brisk', 'u', 'plain');
append(2, 'brisk', 'u', 'full');
append(2, 'brisk', 'u', 'deep');
append(2, 'brisk', 'u', 'fine');
comes_true(q{(SELECT count(*) = 3 FROM projector.outbox WHERE status = 'dead')}, 'three events are dead');
is(sql(q{SELECT aggregate_id, attempt_count, error_code FROM projector.outbox JOIN projector.failures
		USING (projection_name, tenant_id, aggregate_id, sequence_number) ORDER BY 1}),
	"deep|8|54001\nfull|32|53200\nplain|8|P0001", 'at once, or late if it may have passed by itself');
is(sql(q{SELECT count(DISTINCT id) FROM difference}), '3', 'each fails alone');
sql(q{DELETE FROM trouble; SELECT count(*) FROM projector_requeue()});
is_exact('mended');

# Handlers that do not return.
sql(q{INSERT INTO trouble VALUES ('long', 2, 'sleep'), ('stubborn', 2, 'sleep, catch')});
$pid = sql('SELECT pid FROM workers');
sql(q{BEGIN; SELECT projector_append('v', id, 'quick', '{"n": 1}')
	FROM unnest('{a, long, m, stubborn, z}'::text[]) id, generate_series(1, 3); COMMIT});
comes_true(q{(SELECT count(*) = 2 FROM projector.outbox WHERE status = 'failed')}, 'two handlers run into their timeout');
is(sql(q{SELECT aggregate_id, sequence_number, error_code, error_message FROM projector.failures
		WHERE projection_name = 'quick' ORDER BY 1}),
	join("\n", map { qq{$_|2|57014|the projection's code ran longer than its option "timeout" allows} } qw(long stubborn)),
	'whether it catches that or not');
is(sql(q{SELECT string_agg(DISTINCT id, ', ' ORDER BY id) FROM difference}), 'long, stubborn', 'the others are applied');
is(sql('SELECT pid FROM workers'), $pid, 'by the same worker');
sql(q{DELETE FROM trouble; SELECT projector_requeue('quick', 'v', id, 2) FROM unnest('{long, stubborn}'::text[]) id});
is_exact('no longer slow');

# One poisoned event among a thousand.
sql(q{INSERT INTO trouble VALUES ('p50', 5, 'raise'); ALTER SEQUENCE calls_in_trouble RESTART});
sql(q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
	SELECT 'p', 'p' || a, s, 'patient', jsonb_build_object('n', a * s)
	FROM generate_series(1, 100) a, generate_series(1, 10) s ORDER BY s, a});
comes_true(q{(SELECT count(*) = 6 FROM projector.apply_outbox)}, 'all but one aggregate of a hundred are applied');
is(sql(q{SELECT string_agg(DISTINCT id, ', ') FROM difference}), 'p50', 'whatever fails in one of them');
is(sql(q{SELECT status, count(*), max(attempt_count) FROM projector.outbox GROUP BY 1 ORDER BY 1}), "failed|1|1\nheld|5|0",
	'one failed, the rest of its aggregate waits');
is(sql('SELECT is_called, last_value FROM calls_in_trouble'), 't|1', 'its handler was called once');
is(sql(q{SELECT retry_count FROM projector.failures WHERE aggregate_id = 'p50'}), '0', 'and one failure recorded');
sql(q{DELETE FROM trouble; SELECT projector_requeue('patient', 'p', 'p50', 5)});
is_exact('poison');

# ---- how many ----

set('projector.enabled = off');
comes_true('NOT EXISTS (SELECT FROM workers)', 'disabled, workers end');
append(2, 'patient', 't', 'first');
is(sql('SELECT count(*) FROM projector.apply_outbox'), '2', 'events wait');
set('projector.enabled = on');
comes_true('(SELECT count(*) = 1 FROM workers)', 'enabled, they start again');
is_exact('enabled');

set('projector.workers = 3');
comes_true('(SELECT count(*) = 3 FROM workers)', 'three workers');
set('projector.workers = 1');
comes_true('(SELECT count(*) = 1 FROM workers)', 'one worker');

is(sql('SELECT projector_worker_stop()'), '1', 'workers are stopped by hand');
comes_true('NOT EXISTS (SELECT FROM workers)', 'and end');
append(2, 'patient', 't', 'first');
is(sql('SELECT projector_drain()'), '2', 'none is started by the launcher or an append');
is(sql('SELECT projector_worker_start()'), '1', 'and started by hand');
append(2, 'patient', 't', 'first');
is_exact('started by hand');

# Workers see every change by an operator when they are woken.
foreach my $round (1 .. 10)
{
	sql(q{SELECT projector_pause('patient')});
	append(1, 'patient', 't', 'first');
	sql(q{SELECT projector_resume('patient')});
	comes_true('NOT EXISTS (SELECT FROM projector.apply_outbox)', 'resumed');
	sql(q{SELECT projector_set_mode('patient', 'off')});
	append(1, 'patient', 't', 'first');
	sql(q{SELECT projector_set_mode('patient', 'async')});
	comes_true(q{NOT EXISTS (TABLE difference)}, 'switched on');
}
is_exact('paused and switched');

# ---- load ----

# Two workers, twenty tenants.  In every snapshot, each event is either counted as
# applied or in the outbox, and the counts match the rows.
set('projector.workers = 2');
comes_true('(SELECT count(*) = 2 FROM workers)', 'two workers');
my $dir = $node->basedir;
append_to_file("$dir/append.sql", <<'EOB');
\set t random(1, 20)
\set a random(1, 5)
\set n random(1, 1000)
SELECT projector_append('load' || :t, 'a' || :a, 'patient', jsonb_build_object('n', :n));
EOB
append_to_file("$dir/check.sql", <<'EOB');
SELECT 1 / (c.applied + c.waiting = c.events AND c.waiting = c.items)::int FROM (
    SELECT coalesce(sum(applied_count), 0) AS applied,
           coalesce(sum(pending + held + failed + dead), 0) AS waiting,
           (SELECT count(*) FROM projector.events WHERE tenant_id LIKE 'load%') AS events,
           (SELECT count(*) FROM projector.apply_outbox WHERE tenant_id LIKE 'load%') AS items
    FROM projector.status_by_tenant WHERE projection_name = 'patient' AND tenant_id LIKE 'load%') c;
EOB
my @pgbench = ('pgbench', '-n', '-h', $node->host, '-p', $node->port);
my ($check_out, $check_err, $out, $err) = ('', '', '', '');
my $check = IPC::Run::start([ @pgbench, '-t', 100, '-f', "$dir/check.sql", 'postgres' ], '<', \undef, '>', \$check_out, '2>', \$check_err);
IPC::Run::run([ @pgbench, '-c', 6, '-t', 300, '-f', "$dir/append.sql", 'postgres' ], '<', \undef, '>', \$out, '2>', \$err);
is($err, '', 'load: no error');
$check->finish;
is($check_err, '', 'load: counts agree in every snapshot');
is_exact('load');
is(sql(q{SELECT count(*) FROM projector.events WHERE tenant_id LIKE 'load%'}), '1800', 'load: all events are there');
is(sql(q{SELECT sum(applied_count) FROM projector.status_by_tenant WHERE tenant_id LIKE 'load%'}), '1800', 'and counted');

# ---- in the end ----

is(sql(<<'EOS'), '', 'offsets are at the last event');
SELECT o.* FROM projector.offsets o FULL JOIN (
    SELECT tenant_id, aggregate_id, max(sequence_number) AS last FROM projector.events GROUP BY 1, 2) e
    USING (tenant_id, aggregate_id) WHERE o.last_sequence_number IS DISTINCT FROM e.last
EOS
is(sql('SELECT count(*) FROM projector.failures WHERE resolved_at IS NULL'), '0', 'every failure has been resolved');
ok(slurp_file($node->logfile) !~ /could not serialize|read-only transaction|terminated by signal|PANIC|TRAP/,
	'the configuration has not hurt the workers');

$node->stop;
done_testing();
