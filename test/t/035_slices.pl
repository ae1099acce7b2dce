# One tenant's rebuild by several workers: the run is cut into slices of aggregates.
# Batches of two slices run at the same time, processes are killed in the middle,
# events fail, runs are cancelled and start again.  In the end the read model, its
# digest and the counters are what one worker would have made.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = 1h
projector.workers = 2
projector.slice_events = 100
restart_after_crash = on
fsync = off
autovacuum = off
max_worker_processes = 16
max_prepared_transactions = 10
EOC
$node->start;
use_node($node);

# Rows list their events in the order in which they were applied.  A payload may name a
# gate (an advisory lock to wait for), or make the event fail while table "broken" has a
# row.
sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE broken (id int);
CREATE TABLE paths (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION word(e projector.event) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'gate' THEN
        PERFORM pg_advisory_xact_lock_shared((e.payload->>'gate')::int);
    END IF;
    IF e.payload ? 'poison' AND EXISTS (TABLE broken) THEN
        RAISE EXCEPTION 'not like this: %', e.aggregate_id;
    END IF;
    RETURN e.sequence_number || ' ';
END $$;
CREATE FUNCTION fold(s paths, e projector.event) RETURNS paths IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    s.tenant_id := e.tenant_id;
    s.id := e.aggregate_id;
    s.n := coalesce(s.n, 0) + 1;
    s.path := coalesce(s.path, '') || word(e);
    RETURN s;
END $$;
CREATE VIEW differences AS
    SELECT tenant_id, id, o.path AS expected, t.path
    FROM (SELECT tenant_id::text, aggregate_id::text AS id, count(*) AS n, string_agg(sequence_number || ' ', '' ORDER BY sequence_number) AS path
        FROM projector.events GROUP BY 1, 2) o FULL JOIN paths t USING (tenant_id, id) WHERE (o.n, o.path) IS DISTINCT FROM (t.n, t.path);
-- Objects that a run has left: there should be none.
CREATE VIEW remains AS
    SELECT 'offset ' || aggregate_id AS what FROM projector.projection_offsets WHERE projection_id < 0
    UNION ALL SELECT 'item ' || log_seq FROM projector.apply_outbox WHERE projection_id < 0
    UNION ALL SELECT 'failure ' || log_seq FROM projector.projection_failures WHERE projection_id < 0
    UNION ALL SELECT 'digest ' || tenant_id FROM projector.projection_digests WHERE projection_id < 0
    UNION ALL SELECT 'slice ' || slice FROM projector.projection_run_slices
    UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relname LIKE 'build\_%'
    UNION ALL SELECT 'run ' || run_id || ' in a cursor' FROM projector.projection_cursors WHERE run_id IS NOT NULL;
CREATE VIEW at_gate AS
    SELECT pid, objid::int AS gate FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND (classid, objsubid) = (0, 1);
CREATE VIEW slices AS SELECT * FROM projector.projection_run_slices;
-- 40 aggregates of 25 events each: about 10 slices
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT t, 'a' || lpad(a::text, 2, '0'), s, 'Made', '{}'
    FROM generate_series(1, 25) s, generate_series(0, 39) a, unnest('{c,d}'::text[]) t ORDER BY s, a;
EOS

my $columns = q(fold_columns => '{"n": "s.n + 1", "path": "s.path || word(e)"}');
my $options = '"batch_size": 20, "timeout": "10 min", "retry_base": "1 h", "retry_max": "2 h"';

# Create the projection and apply everything.
sub create
{
	my ($definition, $more) = @_;
	sql(qq{SELECT projector_create('paths', targets => '{paths}', $definition, options => '{$options} '::jsonb || '{$more}')});
	wait_until('count(*) = 0 FROM differences');
	return;
}

sub mark
{
	my ($id, $sequence, $payload) = @_;
	sql(qq{SET session_replication_role = replica; UPDATE projector.events SET payload = '$payload',
		payload_hash = sha256(convert_to('$payload'::jsonb::text, 'UTF8'))
		WHERE (tenant_id, aggregate_id, sequence_number) = ('c', '$id', $sequence)});
	return;
}

sub spoil
{
	sql(q{UPDATE paths SET path = 'spoilt', last_event_version = 1000000; DELETE FROM paths WHERE id = 'a07'; INSERT INTO paths VALUES ('c', 'ghost', 1, 'spoilt') ON CONFLICT DO NOTHING});
	return;
}

# A prepared transaction keeps a gate closed, even if the server crashes.
sub close_gates
{
	my (@gates) = @_;
	sql("BEGIN; SELECT pg_advisory_xact_lock($_); PREPARE TRANSACTION 'gate $_'") for @gates;
	return;
}

sub open_gates
{
	my (@gates) = @_;
	sql("ROLLBACK PREPARED 'gate $_'") for @gates;
	return;
}

sub wait_at_gates
{
	my ($n) = @_;
	$node->poll_query_until('postgres', "SELECT count(DISTINCT gate) = $n AND count(DISTINCT pid) = $n FROM at_gate")
	  or die "not at the gates:\n", sql('TABLE at_gate'), "\n", sql('TABLE slices'), "\n", sql('SELECT * FROM projector.worker_activity()');
	return;
}

sub start_run { return sql("SELECT projector_start_run('paths', 'c')"); }

sub ends
{
	my ($run, $state, $name) = @_;
	wait_until("finished_at IS NOT NULL FROM projector.runs WHERE id = $run");
	is(sql("SELECT state FROM projector.runs WHERE id = $run"), $state, $name);
	is(sql('TABLE remains'), '', "$name: nothing is left of it");
	return;
}

sub is_exact
{
	my ($name) = @_;
	wait_until('count(*) = 0 FROM projector.apply_outbox');
	is(sql("SELECT * FROM differences WHERE tenant_id = 'c'"), '', "$name: the read model is what the log says");
	is(sql("SELECT bool_and(matches) FROM projector_check_digests('paths', 'c')"), 't', "$name: so is its digest");
	is( sql("SELECT count(*), sum(last_sequence_number) FROM projector.offsets WHERE tenant_id = 'c'"),
		sql("SELECT count(DISTINCT aggregate_id), count(*) FROM projector.events WHERE tenant_id = 'c'"), "$name: and the offsets");
	return;
}

my $applied = "SELECT applied_count FROM projector.projection_cursors WHERE tenant_id = 'c'";

# ---- two workers at once, killed in the middle ----

mark('a00', 13, '{"gate": 1}');
mark('a39', 13, '{"gate": 2}');
create($columns, '');
my $before = sql($applied);
spoil();
close_gates(1, 2);
my $run = start_run();
wait_at_gates(2);
comes_true("count(*) FILTER (WHERE NOT done) > 1 AND count(*) = (SELECT slice_count FROM projector.projection_runs WHERE id = $run) FROM slices",
	'two workers are in the middle of batches of two slices');
is(sql("SELECT count(*), count(DISTINCT tenant_id) FROM projector.worker_activity() WHERE activity = 'run'"), '2|1', 'which both are of one tenant');
my $places = 'SELECT slice, done, processed_events, last_aggregate_id, last_sequence_number, applied_count, row_count FROM slices ORDER BY slice';
my $at = sql($places);
is( sql("SELECT processed_events, last_log_seq FROM projector.runs WHERE id = $run"),
	sql('SELECT sum(processed_events), max(last_log_seq) FROM slices'), 'the view of runs adds up the slices');
is( sql("SELECT percent FROM projector.progress WHERE run_id = $run"),
	sql("SELECT round(100.0 * sum(s.processed_events) / greatest(total_events, sum(s.processed_events)), 1) FROM slices s, projector.projection_runs r
		WHERE r.id = $run GROUP BY total_events"), 'so does the one of progress');
like(sql("SELECT why FROM projector.status_by_tenant WHERE tenant_id = 'c'"), qr/run $run, rebuild: @{[ sql('SELECT sum(processed_events) FROM slices') ]} of/, 'and the status');
is(sql("SELECT count(*) FROM paths WHERE tenant_id = 'c' AND path <> 'spoilt'"), '0', 'readers see the old rows');

sql('SELECT pg_terminate_backend(min(pid), 20000) FROM at_gate');
wait_at_gates(2);
is(sql($places), $at, 'a worker is terminated: both slices go on from their last batches');
is(sql('SELECT max(attempt_count) FROM slices'), '0', 'no attempt is counted');
my $counted = 'SELECT attempt_count, count(*) FROM slices WHERE NOT done GROUP BY 1 ORDER BY 1 DESC';
kill 'KILL', sql('SELECT min(pid) FROM at_gate');
ok($node->poll_query_until('postgres', 'SELECT true'), 'a worker is killed, and the server is back');
wait_at_gates(2);
is(sql($places), $at, 'the same after that');
like(sql($counted), qr/^1\|2$/m, 'but with caution: the attempts of both are counted');
$node->kill9;
my $tries = 10 * $PostgreSQL::Test::Utils::timeout_default;
until ($node->start(fail_ok => 1) or $tries-- == 0) { usleep(100_000); $node->stop('fast', fail_ok => 1); }
wait_at_gates(2);
is(sql($places), $at, 'the same after the postmaster is killed');
like(sql($counted), qr/^2\|2$/m, 'both attempts are counted again');

# One of them stays in its batch, the other does all the rest.
open_gates(2);
comes_true('count(*) FILTER (WHERE NOT done) = 1 AND bool_and(done OR slice = 1) FROM slices', 'one worker does the other slices');
sql("SELECT projector_append('c', id, 'Made', '{}') FROM unnest('{a00,a20,b00}'::text[]) id");
is(sql("SELECT state FROM projector.runs WHERE id = $run"), 'running', 'and the run waits for the last');
open_gates(1);
ends($run, 'completed', 'it ends');
is(sql("SELECT slice_count > 5, processed_events >= 1000, total_events = processed_events FROM projector.projection_runs WHERE id = $run"), 't|t|t', 'with all events');
is_exact('killed and continued');
is(sql($applied) - $before, 1003, 'and every event is counted once, whoever has applied it');

# ---- cancelled ----

$before = sql($applied);
spoil();
close_gates(1, 2);
$run = start_run();
wait_at_gates(2);
my $done = sql('SELECT sum(processed_events) FROM slices');
my $cancelled = '';
my $cancel = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "SELECT projector_cancel_run($run)" ], '<', \undef, '>', \$cancelled);
wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%projector_cancel_run($run)' AND wait_event_type = 'Lock')");
open_gates(1, 2);
$cancel->finish;
is($cancelled, "t\n", 'a run with two batches at work is cancelled');
ends($run, 'cancelled', 'it ends');
my $processed = sql("SELECT processed_events FROM projector.runs WHERE id = $run");
ok($processed > $done + 20 && $processed <= $done + 40, 'after these two batches');
is(sql($applied) - $before, $processed, 'which are counted');
is(sql("SELECT count(*) FROM paths WHERE tenant_id = 'c' AND path <> 'spoilt'"), '0', 'nothing has changed for readers');
is(sql("SELECT projector_rebuild('paths')"), '2003', 'a rebuild in one transaction');
is_exact('after it');

# ---- an event fails ----

# While another batch is at work, the error is noted, and nobody starts a batch.
mark('a39', 13, '{"gate": 2, "poison": 1}');
sql('INSERT INTO broken VALUES (1)');
spoil();
close_gates(1, 2);
$run = start_run();
wait_at_gates(2);
$done = sql("SELECT sum(processed_events) FROM slices");
open_gates(2);
comes_true('count(error_code) = 1 FROM slices', 'an event fails in one slice');
is(sql("SELECT state, error_code FROM projector.runs WHERE id = $run"), 'running|', 'the run goes on');
is(sql("SELECT sum(processed_events) FROM slices"), $done, 'with the batch that is at work only');
open_gates(1);
ends($run, 'failed', 'then it fails');
is(sql("SELECT error_code, error_message, error_context ~ 'event .*a39' FROM projector.runs WHERE id = $run"), 'P0001|not like this: a39|t', 'and says why');
is(sql("SELECT processed_events FROM projector.runs WHERE id = $run"), $done + 20, 'with what was done');
is(sql("SELECT problem, tenant_id, detail FROM projector.problems WHERE problem = 'run_failed'"),
	"run_failed|c|run $run, rebuild: not like this: a39", 'an operator sees it');
is(sql("SELECT count(*) FROM paths WHERE tenant_id = 'c' AND path <> 'spoilt'"), '0', 'the old rows are still there');

# With nobody else at work.
set_workers(1);
ends(start_run(), 'failed', 'the same with one worker');
set_workers(2);

# Events that fail are held, or skipped, as by one transaction.
foreach my $how ('hold', 'skip')
{
	mark('a39', 13, '{"poison": 1}');
	mark('a10', 20, '{"poison": 1}');
	mark('a00', 13, '{}');
	sql(qq{SELECT projector_alter('paths', '{"options": {"on_rebuild_error": "$how", "max_attempts": 1}}')});
	my $state = q{SELECT aggregate_id, last_sequence_number, error_count FROM projector.offsets WHERE tenant_id = 'c' AND aggregate_id IN ('a10', 'a39') ORDER BY 1;
		SELECT aggregate_id, status, count(*) FROM projector.outbox GROUP BY 1, 2 ORDER BY 1, 2;
		SELECT DISTINCT aggregate_id, sequence_number, error_message, resolution FROM projector.failures
			WHERE log_seq IN (SELECT log_seq FROM projector.events WHERE payload ? 'poison') AND (resolved_at IS NULL OR resolution = 'skipped') ORDER BY 1;
		SELECT id, n, path FROM paths WHERE tenant_id = 'c' ORDER BY id};

	spoil();
	$run = start_run();
	ends($run, 'completed', "$how: the run completes");
	is(sql("SELECT slice_count > 5 FROM projector.projection_runs WHERE id = $run"), 't', 'in slices');
	my $in_slices = sql($state);

	spoil();
	sql("SELECT projector_rebuild('paths', 'c')");
	is($in_slices, sql($state), 'failed events are treated as in one transaction');
	like($in_slices, qr/not like this: a10/, 'there are some');
	is(sql("SELECT bool_and(matches) FROM projector_check_digests('paths', 'c')"), 't', 'the digest is right');
}
sql(q{TRUNCATE broken; SELECT projector_drop('paths'); TRUNCATE paths});

# ---- started again, redefined, dropped ----

mark('a10', 20, '{}');
mark('a00', 13, '{"gate": 1}');
mark('a39', 13, '{"gate": 2}');
create(q(fold => 'fold'), '');

# Stop between two batches, in the middle of the run.
sub stop_between
{
	spoil();
	close_gates(1, 2);
	my $stopped = start_run();
	wait_at_gates(2);
	sql('ALTER SYSTEM SET projector.enabled = off');
	$node->reload;
	open_gates(1, 2);
	wait_until("NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'projector worker')");
	is(sql('SELECT count(*) > 5 AND bool_or(NOT done) AND bool_or(processed_events > 0) FROM slices'), 't', 'stopped in the middle');
	my ($ret, $out, $err) = $node->psql('postgres', "SELECT projector_start_run('paths', 'c')");
	like($err, qr/Run $stopped, a rebuild, has processed @{[ sql('SELECT sum(processed_events) FROM slices') ]} of about/, 'another run is refused, with the progress');
	return $stopped;
}

sub go_on
{
	sql('ALTER SYSTEM SET projector.enabled = on');
	$node->reload;
	return;
}

sub set_workers
{
	my ($n) = @_;
	sql("ALTER SYSTEM SET projector.workers = $n");
	$node->reload;
	wait_until("count(*) = $n FROM pg_stat_activity WHERE backend_type = 'projector worker'");
	return;
}

$run = stop_between();
sql('ALTER TABLE paths ADD COLUMN more int');
go_on();
ends($run, 'completed', 'the target is altered');
is_exact('built again');
is(sql("SELECT processed_events FROM projector.runs WHERE id = $run"), sql("SELECT count(*) FROM projector.events WHERE tenant_id = 'c'"), 'from the start');
is(sql("SELECT stale FROM projector.status_by_tenant WHERE tenant_id = 'c'"), 'f', 'not stale');

$run = stop_between();
sql(sql("SELECT replace(pg_get_functiondef('fold'::regproc), 'RETURN s;', 'RETURN s; -- changed')"));
go_on();
ends($run, 'completed', 'the function is replaced in the middle');
is_exact('built by two definitions');
is(sql("SELECT stale FROM projector.status_by_tenant WHERE tenant_id = 'c'"), 't', 'so it is stale');

$run = stop_between();
sql("SELECT projector_drop('paths')");
is(sql('TABLE remains'), '', 'the projection is dropped: nothing is left');
go_on();

# ---- with appends, and more workers ----

sql('TRUNCATE paths');
mark('a00', 13, '{}');
mark('a39', 13, '{}');
create($columns, '');
set_workers(4);
foreach my $round (1 .. 5)
{
	spoil();
	$run = start_run();
	sql("SELECT projector_append('c', id, 'Made', '{}') FROM unnest('{0,a00,a20,c$round,zz$round}'::text[]) id") for 1 .. 10;
	ends($run, 'completed', "round $round: completed while events are appended");
	is_exact("round $round");
}
is(sql("SELECT bool_and(slice_count > 5) FROM (SELECT slice_count FROM projector.projection_runs ORDER BY id DESC LIMIT 5) r"), 't', 'all in slices');
set_workers(2);

# ---- what is not cut ----

sql(<<'EOS');
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE lanes (LIKE paths INCLUDING ALL, last_log_seq bigint);
CREATE TABLE blind (LIKE paths INCLUDING DEFAULTS);
ALTER TABLE blind ALTER id TYPE text COLLATE blind, ADD PRIMARY KEY (tenant_id, id);
CREATE TABLE numbers (LIKE paths INCLUDING DEFAULTS);
ALTER TABLE numbers ALTER id TYPE numeric USING 0, ADD PRIMARY KEY (tenant_id, id);
CREATE TABLE in_order (LIKE paths INCLUDING ALL);
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'n', a, s, 'Made', '{}' FROM generate_series(1, 25) s, generate_series(10, 49) a ORDER BY s, a;
SELECT projector_create('blind', targets => '{blind}', fold_columns => '{"n": "s.n + 1"}', mode => 'off');
SELECT projector_create('numbers', targets => '{numbers}', fold_columns => '{"n": "s.n + 1"}', mode => 'off');
SELECT projector_create('in_order', targets => '{in_order}', fold_columns => '{"n": "s.n + 1"}', mode => 'off', ordering => 'log');
SELECT projector_create('lanes', targets => '{lanes}', fold_columns => '{"n": "s.n + 1"}', mode => 'off', key => 'left(aggregate_id, 1)');
SELECT projector_start_run(p, 'n') FROM unnest('{blind,numbers,in_order,lanes,paths}'::text[]) p;
EOS
wait_until("NOT EXISTS (SELECT FROM projector.progress)");
is(sql("SELECT projection_name, r.state, slice_count > 1 FROM projector.runs r JOIN projector.projection_runs USING (id) WHERE r.tenant_id = 'n' ORDER BY 1"),
	"blind|completed|f\nin_order|completed|f\nlanes|completed|f\nnumbers|completed|f\npaths|completed|t", 'only a fold with a row for each aggregate is cut');

my $log = slurp_file($node->logfile);
my @bad = grep { /leak|not closed|PANIC|TRAP|still referenced|could not serialize|deadlock/ } split /\n/, $log;
is(join("\n", @bad), '', 'nothing has leaked');
is(scalar(() = $log =~ /terminated by signal/g), 1, 'and nothing crashed but what was killed');
$node->stop;
done_testing();
