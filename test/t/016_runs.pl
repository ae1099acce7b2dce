# Background runs with real workers: rebuilds and catch-ups of every kind and mode,
# while events are appended, processes are killed, and sessions cancel, read and take
# locks.  Whatever happens, in the end the read model equals the log.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use Time::HiRes qw(usleep);

# Workers do not poll (a long naptime), so all work must wake them.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = 1h
restart_after_crash = on
fsync = off
autovacuum = off
max_connections = 50
max_worker_processes = 16
max_prepared_transactions = 10
EOC
$node->start;

# Each part has a database of its own.
my $db;

sub set
{
	my ($setting) = @_;
	sql("ALTER SYSTEM SET $setting");
	$node->reload;
	return;
}

# Start a command in the background.
sub begin
{
	my ($text) = @_;
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($db), '-c', $text ], '<', \undef, '>', \$out, '2>', \$err);

	return { run => $run, out => \$out, err => \$err };
}

# Wait for it and return its output.
sub answer
{
	my ($command) = @_;
	$command->{run}->finish;
	chomp(my $answer = ${ $command->{out} } . ${ $command->{err} });
	return $answer;
}

# Every row lists its events in the order in which they were applied, so that one that is
# lost, applied twice or out of order shows.  An event's payload may name a gate (an
# advisory lock to wait for), or make it fail while table "broken" has a row.  Calls are
# counted, even if they are rolled back.
my $setup = <<'EOS';
CREATE EXTENSION projector;
CREATE TABLE broken (how text);
CREATE TABLE made (name text PRIMARY KEY, kind text, mode text);
CREATE TABLE passed (tenant_id text, aggregate_id text, sequence_number bigint);
CREATE TABLE horizon (log_seq bigint);
CREATE FUNCTION link(name text, what text, payload jsonb) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('calls_' || name);
    IF payload ? 'gate' THEN
        PERFORM pg_advisory_xact_lock_shared((payload->>'gate')::int);
    END IF;
    IF payload ? 'poison' AND EXISTS (SELECT FROM broken WHERE how = 'raise') THEN
        RAISE EXCEPTION 'not like this: %', what;
    ELSIF payload ? 'poison' AND EXISTS (SELECT FROM broken WHERE how = 'linger') THEN
        PERFORM pg_sleep(600);
    END IF;
    RETURN what || ' ';
END $$;

-- A projection of each kind, with its table.
CREATE PROCEDURE make(name text, kind text, mode text DEFAULT 'async', options jsonb DEFAULT '{}', types text[] DEFAULT NULL)
LANGUAGE plpgsql AS $body$
DECLARE
    options jsonb := '{"batch_size": 50, "timeout": "10 min", "retry_base": "1 h", "retry_max": "2 h"}' || options;
    word text := format($q$link(%L, e.sequence_number::text, e.payload)$q$, name);
    far_word text := format($q$link(%L, e.aggregate_id || ':' || e.sequence_number, e.payload)$q$, name);
    started text := CASE mode WHEN 'paused' THEN 'async' ELSE mode END;
BEGIN
    EXECUTE format('CREATE SEQUENCE %I', 'calls_' || name);
    EXECUTE format($q$CREATE TABLE %I (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '',
        last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, id))$q$, name);
    IF kind IN ('handler', 'journal') THEN
        EXECUTE format($q$CREATE FUNCTION %1$I(e projector.event) RETURNS void LANGUAGE sql AS $f$
            INSERT INTO %1$I AS t (tenant_id, id, n, path) VALUES (e.tenant_id, %2$s, 1, %3$s)
            ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, path = t.path || excluded.path $f$$q$,
            name, CASE kind WHEN 'handler' THEN 'e.aggregate_id' ELSE '''all''' END, CASE kind WHEN 'handler' THEN word ELSE far_word END);
        PERFORM projector_create(name, handler => name, targets => ARRAY[name], mode => started, options => options,
            event_types => types, ordering => CASE kind WHEN 'handler' THEN 'aggregate' ELSE 'log' END);
    ELSIF kind = 'statement' THEN
        PERFORM projector_create(name, targets => ARRAY[name], mode => started, options => options, event_types => types,
            statement => format($q$INSERT INTO %I AS t (tenant_id, id, n, path)
                SELECT tenant_id, aggregate_id, count(*), string_agg(%s, '' ORDER BY sequence_number)
                FROM batch e GROUP BY 1, 2 ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + excluded.n, path = t.path || excluded.path$q$,
                name, word));
    ELSIF kind = 'fold' THEN
        EXECUTE format($q$CREATE FUNCTION %1$I(s %1$I, e projector.event) RETURNS %1$I IMMUTABLE LANGUAGE plpgsql AS $f$
            BEGIN
                s.tenant_id := e.tenant_id;
                s.id := e.aggregate_id;
                s.n := coalesce(s.n, 0) + 1;
                s.path := coalesce(s.path, '') || %2$s;
                RETURN s;
            END $f$$q$, name, word);
        PERFORM projector_create(name, fold => name, targets => ARRAY[name], mode => started, options => options, event_types => types);
    ELSE
        PERFORM projector_create(name, targets => ARRAY[name], mode => started, options => options, event_types => types,
            fold_columns => jsonb_build_object('n', 's.n + 1', 'path', 's.path || ' || CASE kind WHEN 'columns' THEN word ELSE far_word END),
            key => CASE kind WHEN 'columns' THEN 'aggregate_id' ELSE $q$payload->>'lane'$q$ END);
    END IF;
    IF mode = 'paused' THEN
        PERFORM projector_pause(name);
    END IF;
    INSERT INTO made VALUES (name, kind, mode);
END $body$;

-- The read model computed from the log, and the projections that differ.
CREATE FUNCTION oracle(kind text) RETURNS TABLE (tenant_id text, id text, n bigint, path text) LANGUAGE sql AS $$
    WITH e AS (SELECT tenant_id::text, CASE kind WHEN 'lanes' THEN payload->>'lane' WHEN 'journal' THEN 'all' ELSE aggregate_id END AS id,
            CASE WHEN kind IN ('lanes', 'journal') THEN aggregate_id || ':' ELSE '' END || sequence_number AS word, log_seq
        FROM projector.events e WHERE log_seq <= coalesce((SELECT min(log_seq) FROM horizon), log_seq) AND NOT EXISTS (SELECT FROM passed p
            WHERE (p.tenant_id, p.aggregate_id, p.sequence_number) = (e.tenant_id, e.aggregate_id, e.sequence_number)))
    SELECT tenant_id, id, count(*), string_agg(word || ' ', '' ORDER BY log_seq) FROM e WHERE id IS NOT NULL GROUP BY 1, 2
$$;
CREATE FUNCTION differences(name text, tenant text DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    result bigint;
BEGIN
    EXECUTE format($q$SELECT count(*) FROM oracle($1) o FULL JOIN %I t USING (tenant_id, id)
        WHERE (tenant_id = $2 OR $2 IS NULL) AND (o.n, o.path) IS DISTINCT FROM (t.n, t.path)$q$, name)
        INTO result USING (SELECT kind FROM made m WHERE m.name = differences.name), tenant;
    RETURN result;
END $body$;
CREATE FUNCTION wrong(tenant text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(name || ': ' || differences(name, tenant), ', ' ORDER BY name), '') FROM made
    WHERE differences(name, tenant) > 0
$$;
CREATE PROCEDURE spoil(name text, tenant text) LANGUAGE plpgsql AS $body$
BEGIN
    EXECUTE format($q$UPDATE %I SET path = 'spoilt', last_event_version = 1000000, last_log_seq = 1e15 WHERE tenant_id = $1$q$, name) USING tenant;
    EXECUTE format($q$DELETE FROM %1$I WHERE tenant_id = $1 AND id = (SELECT max(id) FROM %1$I WHERE tenant_id = $1)$q$, name) USING tenant;
    EXECUTE format($q$INSERT INTO %I VALUES ($1, 'ghost', 1, 'spoilt')$q$, name) USING tenant;
END $body$;

-- Objects that a run has left: there should be none.
CREATE VIEW remains AS
    SELECT 'offset ' || aggregate_id AS what FROM projector.projection_offsets WHERE projection_id < 0
    UNION ALL SELECT 'item ' || log_seq FROM projector.apply_outbox WHERE projection_id < 0
    UNION ALL SELECT 'failure ' || log_seq FROM projector.projection_failures WHERE projection_id < 0
    UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relname LIKE 'build\_%'
    UNION ALL SELECT 'run ' || run_id || ' in a cursor' FROM projector.projection_cursors WHERE run_id IS NOT NULL;
CREATE VIEW active AS SELECT * FROM projector.runs WHERE state IN ('queued', 'running');
CREATE VIEW workers AS
    SELECT * FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database();
CREATE VIEW at_gate AS
    SELECT pid, objid::int AS gate FROM pg_locks
    WHERE locktype = 'advisory' AND NOT granted AND (classid, objsubid) = (0, 1)
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
EOS

sub use_database
{
	my ($name) = @_;
	$node->safe_psql('postgres', "DROP DATABASE $db WITH (FORCE)") if $db;
	$db = $name;
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	use_node($node, $db);
	sql($setup);
	return;
}

# Events: aggregates a00, a01, … with the given number of events each, in turn.
sub fill
{
	my ($tenant, $aggregates, $each) = @_;
	sql(qq{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		SELECT '$tenant', 'a' || lpad(a::text, 2, '0'), s, 'Made', jsonb_build_object('lane', 'l' || a % 3)
		FROM generate_series(1, $each) s, generate_series(0, $aggregates - 1) a ORDER BY s, a});
	return;
}

# Change an event in the log, with triggers disabled: adds "gate" and "poison".
sub mark
{
	my ($tenant, $id, $sequence, $payload) = @_;
	sql(qq{SET session_replication_role = replica; UPDATE projector.events SET payload = payload || '$payload',
		payload_hash = sha256(convert_to((payload || '$payload')::text, 'UTF8'))
		WHERE (tenant_id, aggregate_id, sequence_number) = ('$tenant', '$id', $sequence)});
	return;
}

sub append
{
	my ($tenant, $id) = @_;
	return "SELECT projector_append('$tenant', '$id', 'Made', '{\"lane\": \"l1\"}');";
}

sub spoil
{
	my ($tenant, $names) = @_;
	$names //= 'true';
	sql("DO \$\$ DECLARE m made; BEGIN FOR m IN SELECT * FROM made WHERE $names LOOP CALL spoil(m.name, '$tenant'); END LOOP; END \$\$");
	return;
}

# A prepared transaction keeps a gate closed, even if the server crashes.
sub close_gate
{
	my ($gate) = @_;
	sql("BEGIN; SELECT pg_advisory_xact_lock($gate); PREPARE TRANSACTION 'gate $gate'");
	return;
}

sub open_gate
{
	my ($gate) = @_;
	sql("ROLLBACK PREPARED 'gate $gate'");
	return;
}

sub wait_at_gate
{
	my ($gate, $n) = @_;
	wait_until("count(*) = $n FROM at_gate WHERE gate = $gate");
	return;
}

sub start_run
{
	my ($name, $tenant, $mode) = @_;
	$mode //= 'rebuild';
	return sql("SELECT projector_start_run('$name', '$tenant', '$mode')");
}

# A run's row, by columns.
sub run_is
{
	my ($run, $columns, $expected, $name) = @_;
	return is(sql("SELECT $columns FROM projector.runs WHERE id = $run"), $expected, $name);
}

sub ends
{
	my ($run, $state, $name) = @_;
	wait_until("finished_at IS NOT NULL FROM projector.runs WHERE id = $run");
	return run_is($run, 'state', $state, $name);
}

# All runs have ended, and the read models equal the log.
sub is_exact
{
	my ($name, $tenant) = @_;
	my $whose = $tenant ? "'$tenant'" : 'NULL';
	my $done = $node->poll_query_until($db, "SELECT NOT EXISTS (TABLE active) AND wrong($whose) = ''
		AND NOT EXISTS (SELECT FROM projector.apply_outbox WHERE tenant_id = $whose OR $whose IS NULL)");

	ok($done, "$name: the read models are what the log says, and nothing is left to do")
	  or diag(sql("SELECT wrong($whose)"), "\n", sql('TABLE projector.outbox'), "\n", sql('SELECT * FROM projector.runs ORDER BY id DESC LIMIT 40'));
	is(sql('TABLE remains'), '', "$name: no traces of a run");
	return;
}

# ---- every kind, in every mode ----

use_database('kinds');
fill($_, 10, 12) for 't1', 't2';
foreach my $kind (qw(handler statement fold columns lanes journal))
{
	foreach my $mode (qw(async follow inline off paused))
	{
		sql("CALL make('${kind}_$mode', '$kind', '$mode')") unless $kind =~ /lanes|journal/ && $mode eq 'inline';
	}
}
my $idle = q{name LIKE '%off' OR name LIKE '%paused'};
my $all = sql('SELECT count(*) FROM made');
comes_true(qq{NOT EXISTS (SELECT FROM made WHERE NOT ($idle) AND differences(name) > 0)}, 'new projections are applied');
is(sql("SELECT count(DISTINCT n) FROM made, LATERAL (SELECT differences(name, 't1') AS n) d WHERE ($idle) AND n = 0"), '0', 'those that are off or paused are not');

# Without concurrent appends.
my $note = sql("SELECT string_agg(name || ':' || c.relfilenode || ' ' || c.oid, ',' ORDER BY name) FROM made JOIN pg_class c ON c.relname = name AND relkind = 'r'");
spoil('t1');
spoil('t2');
is(sql("SELECT count(*) FROM made WHERE differences(name, 't1') >= 2 AND differences(name, 't2') >= 2"), $all, 'all read models are spoilt');
is(sql("SELECT count(*) FROM projector_start_run(NULL, tenant_id => 't1')"), $all, 'a run for each');
comes_true('NOT EXISTS (TABLE active)', 'which all end');
is(sql("SELECT state, mode, tenant_id, count(*), sum(processed_events), sum(total_events) FROM projector.runs GROUP BY 1, 2, 3"),
	"completed|rebuild|t1|$all|" . $all * 120 . '|' . $all * 120, 'completed');
is(sql("SELECT wrong('t1')"), '', 'every kind is mended, in every mode');
is(sql("SELECT count(*) FROM made WHERE differences(name, 't2') >= 2"), $all, 'another tenant is as it was');
is(sql("SELECT string_agg(name || ':' || c.relfilenode || ' ' || c.oid, ',' ORDER BY name) FROM made JOIN pg_class c ON c.relname = name AND relkind = 'r'"),
	$note, 'tables are what they were');
is(sql("SELECT string_agg(DISTINCT mode, ' ' ORDER BY mode) || ' ' || count(*) FILTER (WHERE paused) FROM projector.projections"),
	'async follow inline off 6', 'modes and pauses too');
is(sql('TABLE remains'), '', 'no traces of a run');
sql("SELECT count(*) FROM projector_start_run(NULL, tenant_id => 't2')");
is_exact('all tenants', undef);

# Transactions that are open when runs start, while they run, and when they end.  A run
# waits for one that has applied events inline.
set("projector.naptime = '100 ms'");
mark('t1', 'a06', 5, '{"gate": 1}');
spoil('t1');
close_gate(1);
sql("SELECT projector_start_run(name, tenant_id => 't1') FROM made WHERE mode = 'inline' ORDER BY kind <> 'handler'");
wait_at_gate(1, 1);
my $before = $node->background_psql($db);
$before->query_safe('BEGIN;' . append('t1', 'a02') . append('t1', 'new1') . append('t1', 'a08'));
sql('BEGIN;' . append('t1', 'a03') . append('t1', 'new2') . append('t1', 'a07') . q{PREPARE TRANSACTION 'before'});
sql("SELECT projector_start_run(name, tenant_id => 't1') FROM made WHERE mode <> 'inline'");
is(sql('SELECT state, count(*) FROM active GROUP BY 1 ORDER BY 2'), "running|1\nqueued|" . ($all - 1), 'one worker, one run at a time');
my $meanwhile = $node->background_psql($db);
$meanwhile->query_safe('BEGIN;' . append('t1', 'a01') . append('t1', 'new3') . append('t1', 'a09'));
sql('BEGIN;' . append('t1', 'a04') . append('t1', 'new4') . append('t1', 'a06') . q{PREPARE TRANSACTION 'meanwhile'});
sql(append('t1', $_)) for 'a00', 'a05', 'new5';
open_gate(1);
comes_true("count(*) = 3 FROM active", 'all but those whose pair is locked by an open transaction come to their end');
is(sql("SELECT string_agg(projection_name, ' ' ORDER BY projection_name) FROM active"), 'columns_inline fold_inline statement_inline',
	'which are those that had been applied inline before the run started');
$before->query_safe('COMMIT');
$before->quit;
sql("COMMIT PREPARED 'before'");
$meanwhile->query_safe('COMMIT');
$meanwhile->quit;
sql("COMMIT PREPARED 'meanwhile'");
comes_true('NOT EXISTS (TABLE active)', 'when it ends they go on');
comes_true(qq{NOT EXISTS (SELECT FROM made WHERE NOT ($idle) AND differences(name) > 0)}, 'what was open, prepared or queued is applied');
is(sql("SELECT string_agg(DISTINCT state, ' ') FROM projector.runs"), 'completed', 'all have completed');
sql("SELECT projector_resume(name), projector_set_mode(name, CASE mode WHEN 'off' THEN 'async' ELSE mode END) FROM projector.projections WHERE $idle");
is_exact('transactions open across runs');

# Everything at once: appenders of all kinds, while runs start and are cancelled repeatedly.
my $dir = $node->basedir;
my %scripts = (
	append => <<'EOB',
\set t random(1, 3)
\set a random(1, 12)
SELECT projector_append('t' || :t, 'a' || :a, 'Made', jsonb_build_object('lane', 'l' || :a % 3));
EOB
	long => <<'EOB',
\set t random(1, 3)
\set a random(1, 12)
BEGIN;
SELECT projector_append('t' || :t, 'a' || :a, 'Made', jsonb_build_object('lane', 'l' || :a % 3)) FROM generate_series(1, 2);
\sleep 30 ms
END;
EOB
	prepared => <<'EOB',
\set t random(1, 3)
BEGIN;
SELECT projector_append('t' || :t, 'p' || :client_id, 'Made', '{"lane": "l1"}');
PREPARE TRANSACTION 'c:client_id';
\sleep 30 ms
COMMIT PREPARED 'c:client_id';
EOB
	operator => <<'EOB',
\set t random(1, 3)
\set n random(1, 4)
SELECT start_some('t' || :t, :n);
\sleep 20 ms
SELECT cancel_some();
EOB
);
append_to_file("$dir/$_.sql", $scripts{$_}) for keys %scripts;
sql(<<'EOS');
CREATE TABLE tally (started bigint DEFAULT 0, cancelled bigint DEFAULT 0);
INSERT INTO tally DEFAULT VALUES;
CREATE FUNCTION start_some(tenant text, n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    m text;
BEGIN
    FOR m IN SELECT name FROM made ORDER BY random() LIMIT n LOOP
        BEGIN
            PERFORM projector_start_run(m, tenant, CASE WHEN random() < 0.7 THEN 'rebuild' ELSE 'catch_up' END);
            UPDATE tally SET started = started + 1;
        EXCEPTION WHEN object_in_use OR undefined_object THEN
            NULL;    -- it has a run, or no event yet
        END;
    END LOOP;
END $$;
CREATE FUNCTION cancel_some() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF random() < 0.3 AND (SELECT projector_cancel_run(id) FROM active ORDER BY random() LIMIT 1) THEN
        UPDATE tally SET cancelled = cancelled + 1;
    END IF;
END $$;
EOS
set('projector.workers = 2');
wait_until('count(*) = 2 FROM workers');
my @handles;
foreach my $part ([ 'append', 2 ], [ 'long', 1 ], [ 'prepared', 1 ], [ 'operator', 1 ])
{
	my ($name, $clients) = @$part;
	my ($out, $err) = ('', '');
	my @command = ('pgbench', '-n', '-T', $ENV{CHAOS_SECONDS} || 6, '-c', $clients, '-f', "$dir/$name.sql", '--max-tries=100',
		'-h', $node->host, '-p', $node->port, $db);
	push @handles, { name => $name, out => \$out, err => \$err, run => IPC::Run::start(\@command, '<', \undef, '>', \$out, '2>', \$err) };
}
foreach my $handle (@handles)
{
	$handle->{run}->finish;
	is(${ $handle->{err} }, '', "$handle->{name}: no error");
}
note('started, cancelled: ' . sql('TABLE tally') . ', events: ' . sql('SELECT count(*) FROM projector.events'));
is(sql('SELECT started > 20 AND cancelled > 0 FROM tally'), 't', 'runs were started and cancelled');
is_exact('everything at once');
is(sql(q{SELECT state, error_code, count(*) FROM projector.runs WHERE state NOT IN ('completed', 'cancelled') GROUP BY 1, 2}), '', 'no run has failed');
is(sql('SELECT count(*) FROM projector.failures'), '0', 'nor an event');
set('projector.workers = 1');
set("projector.naptime = '1 h'");

# ---- interrupted ----

# A killed postmaster needs some time to exit, and so do its children.
sub start_again
{
	foreach my $try (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $node->start(fail_ok => 1);
		usleep(100_000);
		$node->stop('fast', fail_ok => 1);
	}
	die 'the server does not start';
}

# In place and aside, in aggregate order and in log order: each run is stopped in the
# middle of a batch, by an event that waits at its gate.  In aggregate order that is
# event 313 of 500, otherwise event 253; a batch has 50.
use_database('interrupted');
set('projector.workers = 4');
fill('c', 20, 25);
fill('d', 5, 5);
mark('c', 'a12', 13, '{"gate": 1}');
sql("CALL make('$_', '$_')") for qw(handler columns lanes journal);
is_exact('backfill');
spoil('c');
sql(qq{ALTER SEQUENCE calls_$_ RESTART}) for qw(handler columns lanes journal);
sql('CREATE TABLE columns_before AS SELECT * FROM columns; CREATE TABLE lanes_before AS SELECT * FROM lanes');
close_gate(1);
my %run;
$run{$_} = start_run($_, 'c') for qw(handler columns lanes journal);
wait_at_gate(1, 4);

my $places = "columns|running|300|500\nhandler|running|300|500\njournal|running|250|500\nlanes|running|250|500";

sub stand_still
{
	my ($name) = @_;
	is(sql('SELECT projection_name, state, processed_events, (SELECT max(log_seq) FROM projector.events WHERE tenant_id = r.tenant_id)
			FROM active r ORDER BY 1'), $places, $name);
	is(sql('SELECT count(*) FROM ((TABLE columns EXCEPT TABLE columns_before) UNION ALL (TABLE columns_before EXCEPT TABLE columns)
			UNION ALL (TABLE lanes EXCEPT TABLE lanes_before) UNION ALL (TABLE lanes_before EXCEPT TABLE lanes)) d'), '0',
		'readers see the folds as they were');
	return;
}
stand_still('stopped in the middle of a batch');

sql('SELECT pg_cancel_backend(pid) FROM at_gate');
$node->wait_for_log(qr/canceling statement due to user request/);
wait_at_gate(1, 4);
stand_still('a cancelled batch is tried again');
is(sql('SELECT max(attempt_count) FROM projector.projection_runs'), '0', 'and not counted');
kill 'KILL', sql('SELECT min(pid) FROM at_gate');
ok($node->poll_query_until($db, 'SELECT true'), 'a worker is killed, and the server is back');
wait_at_gate(1, 4);
stand_still('they go on from their last batch');
is(sql('SELECT min(attempt_count), max(attempt_count) FROM active JOIN projector.projection_runs USING (id)'), '1|1', 'with caution: the attempts are counted');
$node->kill9;
start_again();
wait_at_gate(1, 4);
stand_still('the same after the postmaster is killed');
is(sql('SELECT min(attempt_count), max(attempt_count) FROM active JOIN projector.projection_runs USING (id)'), '2|2', 'counted again');
sql('SELECT pg_terminate_backend(min(pid), 20000) FROM at_gate');
wait_at_gate(1, 4);
stand_still('a worker that was terminated is replaced');

# Stopped between batches.
set('projector.enabled = off');
open_gate(1);
comes_true('NOT EXISTS (SELECT FROM workers)', 'workers leave after their batch');
$places = "columns|running|350|500\nhandler|running|350|500\njournal|running|300|500\nlanes|running|300|500";
stand_still('which is committed');
$node->restart;
stand_still('the server is restarted between two batches');

# ---- refused while a run is active ----

# No worker runs now, but the runs are still active.
foreach my $call (
	"projector_start_run('%s', tenant_id => 'c')", "projector_start_run('%s', 'c', 'catch_up')", "projector_start_run('%s')",
	"projector_rebuild('%s', 'c')", "projector_rebuild('%s')", "projector_reset('%s', 'c', force => true)", "projector_reset('%s', force => true)",
	"projector_catch_up('%s', 'c')", "projector_catch_up('%s')", "projector_retry('%s', 'c', 'a00', 1)")
{
	my %error = map { $_ => error_of('SELECT ' . sprintf($call, $_)) } keys %run;

	is(join(' ', grep { $error{$_} !~ /^55006: .*\brun $run{$_}\b/si } sort keys %run), '', sprintf($call, '…') . ' is refused');
}
stand_still('nothing has come of it');
like(error_of("SELECT projector_rebuild('columns', 'c', 'a00')"), qr/^55006: .*\brun $run{columns}\b/si, 'so is the rebuild of an aggregate');
like(error_of("SELECT projector_set_mode('columns', 'shadow', 'c')"), qr/^55006: .*\brun $run{columns}\b/si, 'and the mode "shadow"');
is(sql("SELECT projector_rebuild(name, 'd'), projector_catch_up(name, 'd') FROM made"), join("\n", ('25|0') x 4), 'but not of another tenant');
is(sql("SELECT projector_drain(tenant_id => 'c')"), '0', 'a drain passes on');

# Its events are queued, or refused.
sql("SELECT projector_set_mode('handler', 'inline'), projector_set_mode('columns', 'strict')");
like(error_of(append('c', 'a00')), qr/^55000: .*"columns"/, 'strict: an append is refused');
is(sql(append('d', 'a00')), '6', 'but not that of another tenant');
is(sql("SELECT count(*) FROM projector.outbox WHERE projection_name IN ('handler', 'columns')"), '0', 'which is applied at once');
sql("SELECT projector_set_mode('columns', 'inline')");
is(sql(append('c', 'a00') . append('c', 'new')), "26\n1", 'inline: it is not');
is(sql("SELECT projection_name, count(*) FROM projector.outbox WHERE tenant_id = 'c' GROUP BY 1 ORDER BY 1"),
	"columns|2\nhandler|2\njournal|2\nlanes|2", 'its events are queued');
my $other = start_run('columns', 'd');
sql("SELECT projector_pause('journal'), projector_pause('lanes', 'c'), projector_pause('handler', 'c')");
sql("SELECT projector_resume('journal'), projector_resume('handler', 'c')");
is(sql('SELECT count(run_id) FROM projector.projection_cursors'), '4', 'to resume ends no run');

# The views show them.
is(sql(q{SELECT p.projection_name, p.tenant_id, p.mode, p.state, r.processed_events, r.total_events > 0, percent > 0 AND percent <= 100,
			per_second > 0, time_left >= '0', last_log_seq > 0, started_at < now()
			FROM projector.progress p JOIN projector.runs r ON r.id = p.run_id WHERE p.tenant_id = 'c' ORDER BY 1}),
	join("\n", map { "$_->[0]|c|rebuild|running|$_->[1]|t|t|t|t|t|t" } [ 'columns', 350 ], [ 'handler', 350 ], [ 'journal', 300 ], [ 'lanes', 300 ]),
	'progress is shown');
is(sql(q{SELECT run_id, projection_name, tenant_id, mode, state, percent FROM projector.progress WHERE tenant_id = 'd'}),
	"$other|columns|d|rebuild|queued|", 'also of those that wait');

# They continue.
set('projector.enabled = on');
comes_true('NOT EXISTS (TABLE active)', 'enabled, runs go on by themselves');
comes_true("count(*) = 2 FROM projector.outbox", 'and live apply after them');
is(sql("SELECT DISTINCT projection_name FROM projector.outbox"), 'lanes', 'except where it was paused');
is(sql("SELECT projector_resume('lanes', 'c')"), '', 'and is resumed');
is_exact('interrupted');
is(sql("SELECT string_agg(DISTINCT state, ' ') FROM projector.runs"), 'completed', 'all have completed');
foreach my $name (qw(handler columns lanes journal))
{
	# a sequence may skip 32 values in a crash
	my $calls = sql("SELECT last_value FROM calls_$name");
	note("$name was called $calls times");
	cmp_ok($calls, '<', 500 + 25 + 4 * 13 + 2 * 33 + 40, "$name: nothing is done again that was committed");
}
set('projector.workers = 1');

# ---- cancelled ----

# How many events of the tenant are applied, by the rows and by the offsets.
sub applied
{
	my ($name, $tenant) = @_;
	return sql("SELECT (SELECT sum(n) FROM $name WHERE tenant_id = '$tenant'),
		(SELECT sum(last_sequence_number) FROM projector.offsets WHERE (projection_name, tenant_id) = ('$name', '$tenant'))");
}

# Cancel a run that waits at gate 1.  The gate opens when the cancel waits for the run.
sub cancel_at_gate
{
	my ($run) = @_;
	my $cancel = begin("SELECT projector_cancel_run($run)");

	wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%projector_cancel_run($run)' AND wait_event_type = 'Lock')");
	open_gate(1);
	return answer($cancel);
}

use_database('cancelled');
fill('c', 20, 25);
mark('c', 'a12', 13, '{"gate": 1}');
foreach my $part ([ 'handler', 350, 1 ], [ 'statement', 350, 1 ], [ 'journal', 300, 1 ], [ 'columns', 350, 0 ], [ 'lanes', 300, 0 ])
{
	my ($name, $done, $in_place) = @$part;

	sql("CALL make('$name', '$name')");
	is_exact("$name, backfill");

	# Live apply is paused: nothing changes after the run.
	sql("SELECT projector_pause('$name')");
	spoil('c', "name = '$name'");
	sql("CREATE TABLE before AS SELECT * FROM $name; CREATE TABLE offsets_before AS SELECT * FROM projector.offsets");
	close_gate(1);
	my $run = start_run($name, 'c');
	wait_at_gate(1, 1);
	sql(append('c', 'a19') . append('c', 'new'));
	my $events = sql('SELECT count(*) FROM projector.events');
	is(cancel_at_gate($run), 't', "$name: cancelled");
	run_is($run, 'state, processed_events, finished_at >= started_at', "cancelled|$done|t", 'after one batch');
	is(sql('TABLE remains'), '', 'no traces of a run');
	if ($in_place)
	{
		is(applied($name, 'c'), "$done|$done", 'what was committed stays');
		sql("ALTER SEQUENCE calls_$name RESTART");
		is(sql("SELECT projector_catch_up('$name', 'c')"), $events - $done, 'a catch-up goes on from there');
		is(sql("SELECT last_value FROM calls_$name"), $events - $done, 'and applies nothing again');
		is(sql("SELECT differences('$name')"), '0', 'to the end');
		sql("SELECT projector_resume('$name')");
	}
	else
	{
		is(sql("(TABLE $name EXCEPT TABLE before) UNION ALL (TABLE before EXCEPT TABLE $name)"), '', 'the read model is as it was');
		is(sql("(TABLE projector.offsets EXCEPT TABLE offsets_before) UNION ALL (TABLE offsets_before EXCEPT TABLE projector.offsets)"), '', 'so are the offsets');
		sql("SELECT projector_resume('$name')");
		comes_true("NOT EXISTS (SELECT FROM projector.outbox WHERE projection_name = '$name')", 'live apply goes on');
		is(sql("SELECT last_sequence_number FROM projector.offsets WHERE (projection_name, aggregate_id) = ('$name', 'a19')"),
			sql("SELECT max(sequence_number) FROM projector.events WHERE aggregate_id = 'a19'"), 'from where it was');
		ends(start_run($name, 'c'), 'completed', 'another run completes');
	}
	is(sql("SELECT projector_cancel_run($run)"), 'f', 'it cannot be cancelled twice');
	is_exact("$name, cancelled");

	# Live apply continues without a call.
	spoil('c', "name = '$name'");
	close_gate(1);
	$run = start_run($name, 'c');
	wait_at_gate(1, 1);
	sql(append('c', 'a19') . append('c', 'new'));
	is(cancel_at_gate($run), 't', "$name: cancelled while it is live");
	comes_true("NOT EXISTS (SELECT FROM projector.outbox WHERE projection_name = '$name')", 'what had to wait is applied');
	ends(start_run($name, 'c'), 'completed', 'another run completes') if !$in_place;
	is_exact("$name, cancelled while it is live");
	sql('DROP TABLE before, offsets_before');
	sql("SELECT projector_drop('$name'); DELETE FROM made WHERE name = '$name'");
}

# Before it has begun; after it has ended; one that does not exist.
sql("CALL make('fold', 'fold'); CALL make('slow', 'handler')");
is_exact('two more');
close_gate(1);
my $ahead = start_run('slow', 'c');
wait_at_gate(1, 1);
my $queued = start_run('fold', 'c');
run_is($queued, 'state, started_at', 'queued|', 'one waits for the worker');
is(sql(append('c', 'a00')), '26', 'live apply of what waits is not in its way');
is(sql("SELECT projector_cancel_run($queued)"), 't', 'it is cancelled');
run_is($queued, 'state, processed_events', 'cancelled|0', 'before it has begun');
open_gate(1);
ends($ahead, 'completed', 'the other one is not');
is_exact('cancelled in the queue');
is(sql("SELECT projector_cancel_run($_)"), 'f', 'nothing to cancel') for $ahead, $queued;
like(error_of('SELECT projector_cancel_run(12345)'), qr/^42704/, 'there must have been one');

# ---- failing ----

use_database('failing');
fill('c', 20, 25);
mark('c', 'a12', 13, '{"poison": true}');
sql("CALL make('$_', '$_', options => '{\"max_attempts\": 1}')") for qw(handler statement fold columns lanes journal);
is_exact('backfill');
my %in_place = map { $_ => 1 } qw(handler statement journal);
my %by_log = map { $_ => 1 } qw(journal lanes);
my $of = "projection_name = '%s'";

# An event that fails ends the run; what was committed stays.
sql("INSERT INTO broken VALUES ('raise')");
foreach my $name (qw(handler statement fold columns lanes journal))
{
	my $done = $by_log{$name} ? 250 : 300;
	my $whom = $name eq 'statement' ? qr/tenant "c"/ : qr/event 13 .*aggregate "a12"/;

	sql("SELECT projector_pause('$name')");
	sql("CREATE TABLE before AS SELECT * FROM $name");
	my ($run) = start_run($name, 'c');
	ends($run, 'failed', "$name: an event fails, and so does the run");
	run_is($run, "processed_events, error_code, error_message ~ 'not like this: .*13', finished_at >= started_at", "$done|P0001|t|t",
		'which says why');
	like(sql("SELECT error_context FROM projector.runs WHERE id = $run"), $whom, 'and where');
	is(sql('TABLE remains'), '', 'no traces of a run');
	is(sql("SELECT count(*) FROM projector.failures WHERE projection_name = '$name'"), '0', 'nor a failure');
	if ($in_place{$name})
	{
		is(applied($name, 'c'), "$done|$done", 'what was committed stays');
	}
	else
	{
		is(sql("(TABLE $name EXCEPT TABLE before) UNION ALL (TABLE before EXCEPT TABLE $name)"), '', 'the read model is as it was');
	}
	sql('DROP TABLE before');
}
sql(append('c', 'a00'));
sql("SELECT projector_resume(name) FROM made");
comes_true(qq{NOT EXISTS (SELECT FROM projector.outbox WHERE aggregate_id = 'a00' AND projection_name <> 'journal')}, 'live apply resumes');
comes_true(qq{(SELECT count(*) = 3 FROM projector.outbox WHERE status = 'dead' AND (aggregate_id, sequence_number) = ('a12', 13))}, 'and meets the event where it was not applied');
is(sql("SELECT name || differences(name) FROM made ORDER BY 1"), "columns0\nfold0\nhandler1\njournal1\nlanes0\nstatement1", 'it holds its aggregate, or the log');
is(sql("SELECT state FROM projector.projection_cursors c JOIN projector.projections USING (projection_id) WHERE name = 'journal'"), 'stopped', 'which has stopped');

# A run repairs a pair that has stopped or has a dead event.
sql('DELETE FROM broken');
ends(start_run($_, 'c'), 'completed', "$_: mended, it can be run") for qw(handler journal);
is(sql("SELECT projector_requeue('statement', 'c', 'a12', 13)"), '(statement,c,a12,13)', 'or requeued');
is_exact('mended');
is(sql('SELECT string_agg(DISTINCT resolution, $$ $$ ORDER BY resolution) FROM projector.failures'), 'applied rebuilt', 'no failure is open');

# Held: the rest continues.
sql(q{INSERT INTO broken VALUES ('raise'); SELECT projector_alter(name, '{"options": {"on_rebuild_error": "hold"}}') FROM made WHERE name NOT IN ('lanes', 'journal')});
foreach my $name (qw(handler statement fold columns))
{
	spoil('c', "name = '$name'");
	ends(start_run($name, 'c'), 'completed', "$name: an event is held");
	is(sql("SELECT differences('$name')"), '1', 'all but its aggregate is done');
	is(sql("SELECT status, count(*), min(sequence_number), max(sequence_number) FROM projector.outbox WHERE projection_name = '$name' GROUP BY 1 ORDER BY 1"),
		"dead|1|13|13\nheld|12|14|25", 'which waits');
	is(sql("SELECT aggregate_id, sequence_number, error_code FROM projector.failures WHERE projection_name = '$name' AND resolved_at IS NULL"), 'a12|13|P0001', 'with a failure');
	is(sql("SELECT last_sequence_number, error_count FROM projector.offsets WHERE (projection_name, aggregate_id) = ('$name', 'a12')"), '12|1', 'and its offset');
}
sql('DELETE FROM broken; SELECT count(*) FROM projector_requeue()');
is_exact('held and requeued');

# Skipped permanently.
sql(q{INSERT INTO broken VALUES ('raise'); SELECT projector_alter(name, '{"options": {"on_rebuild_error": "skip"}}') FROM made});
sql("INSERT INTO passed VALUES ('c', 'a12', 13)");
foreach my $name (qw(handler statement fold columns lanes journal))
{
	spoil('c', "name = '$name'");
	ends(start_run($name, 'c'), 'completed', "$name: an event is skipped");
	is(sql("SELECT differences('$name')"), '0', 'and no other');
	sql('DELETE FROM broken');
	ends(start_run($name, 'c'), 'completed', 'another run skips it too, whether it would fail or not');
	is(sql("SELECT differences('$name')"), '0', 'as long as nobody says otherwise');
	sql(q{INSERT INTO broken VALUES ('raise')});
	ends(start_run($name, 'c'), 'completed', 'and another one');
	is(sql("SELECT aggregate_id, sequence_number, resolution FROM projector.failures WHERE projection_name = '$name' AND resolution = 'skipped'"), 'a12|13|skipped', 'it is noted once');
	sql(qq{SELECT projector_alter('$name', '{"options": {"on_rebuild_error": "raise"}}')});
	ends(start_run($name, 'c'), 'completed', 'and with "raise"');
}
is_exact('skipped');
sql("DELETE FROM broken; DELETE FROM passed; SELECT projector_unskip(name, 'c', 'a12', 13) FROM made");
ends(start_run($_, 'c'), 'completed', "$_: run without skips") for qw(handler statement lanes journal);
is_exact('unskipped');

# A handler that does not return.
sql(q{INSERT INTO broken VALUES ('linger'); SELECT projector_alter(name, '{"options": {"timeout": "500 ms"}}') FROM made});
foreach my $name (qw(handler fold))
{
	my $run = start_run($name, 'c');

	ends($run, 'failed', "$name: an event takes too long");
	run_is($run, 'processed_events, error_code', '300|57014', 'which ends the run');
}
sql(q{DELETE FROM broken; SELECT projector_alter(name, '{"options": {"timeout": "10 min"}}') FROM made});
sql(q{SELECT count(*) FROM projector_requeue()});
is_exact('no longer slow');

# The log was tampered with.
my $event = "(tenant_id, aggregate_id, sequence_number) = ('c', 'a12', 13)";
my $tamper = 'SET session_replication_role = replica';
sql("CREATE TABLE event AS SELECT * FROM projector.events WHERE $event");
my %tampering = (
	'a payload is changed' => [ "UPDATE projector.events SET payload = '{\"lane\": \"l0\", \"n\": 1}' WHERE $event", 'PJ003' ],
	'an event is missing' => [ "DELETE FROM projector.events WHERE $event", 'PJ007' ]);
foreach my $what (sort keys %tampering)
{
	sql("$tamper; $tampering{$what}->[0]");
	foreach my $name (qw(handler statement fold columns lanes journal))
	{
		my ($code) = error_of("SELECT projector_rebuild('$name', 'c')") =~ /^(\w+)/;

		is($code, $tampering{$what}->[1], "$name: $what");
		sql("SELECT projector_pause('$name')");
		my $run = start_run($name, 'c');
		ends($run, 'failed', 'a run finds it too');
		run_is($run, "processed_events, error_code, error_message ~ 'a12'", ($by_log{$name} ? 250 : 300) . "|$code|t", 'and says the same');
	}
	sql("$tamper; DELETE FROM projector.events WHERE $event; INSERT INTO projector.events OVERRIDING SYSTEM VALUE TABLE event");
	sql('SELECT projector_resume(name) FROM made');
	is_exact($what);
}

# ---- side by side ----

use_database('parallel');
set('projector.workers = 2');
fill($_, 4, 25) for 'p1' .. 'p4';
mark('p1', 'a01', 13, '{"gate": 1}');
mark('p2', 'a01', 13, '{"gate": 2}');
sql("CALL make('base', 'handler'); CALL make('middle', 'columns', options => '{\"depends_on\": [\"base\"]}');
	CALL make('top', 'journal', options => '{\"depends_on\": [\"middle\"]}'); CALL make('alone', 'fold')");
is_exact('backfill');

# Two tenants at a time, on two workers, which do not block each other: if one is
# stopped, the other one completes.
foreach my $stopped (1, 2)
{
	my $free = 3 - $stopped;

	spoil("p$_", "name = 'alone'") for 1 .. 4;
	close_gate($_) for 1 .. 2;
	my @runs = split(/\n/, sql("SELECT projector_start_run('alone')"));
	wait_until('count(DISTINCT gate) = 2 FROM at_gate');
	is(sql("SELECT string_agg(tenant_id, ' ' ORDER BY tenant_id) FROM active r JOIN at_gate ON gate = right(tenant_id, 1)::int
			JOIN workers USING (pid) WHERE r.state = 'running'"), 'p1 p2', 'two workers are at work on two tenants at the same time');
	is(sql(append('p1', 'a00') =~ s/p1/p$stopped/r . append('p1', 'a00') =~ s/p1/p$free/r), join("\n", (25 + $stopped) x 2), 'events are appended');
	open_gate($free);
	ends($runs[ $free - 1 ], 'completed', "p$free is done");
	ends($runs[2], 'completed', 'and the next');
	ends($runs[3], 'completed', 'and all the others');
	run_is($runs[ $stopped - 1 ], 'state, processed_events', 'running|0', "while p$stopped is not");
	comes_true("count(*) = 1 FROM projector.outbox WHERE projection_name = 'alone'", 'live apply goes on for them');
	is(sql("SELECT tenant_id FROM projector.outbox WHERE projection_name = 'alone'"), "p$stopped", 'and waits for that one');
	open_gate($stopped);
	is_exact('side by side');
}

# A projection that depends on another waits for it, tenant by tenant.
spoil("p$_") for 1 .. 4;
close_gate(1);
set('projector.workers = 3');
is(sql('SELECT count(*) FROM projector_start_run(NULL)'), '16', 'all projections, all tenants');
wait_at_gate(1, 2);
comes_true("NOT EXISTS (SELECT FROM active WHERE tenant_id <> 'p1')", 'one tenant does not keep the others');
is(sql("SELECT string_agg(projection_name || ' ' || state, ', ' ORDER BY id) FROM active"),
	'base running, middle queued, top queued, alone running', 'of that one, others wait for the first');
open_gate(1);
is_exact('in the order of depends_on');
is(sql(<<'EOS'), '8|t|t', 'nothing begins before what it depends on has ended');
SELECT count(*), bool_and(b.finished_at <= a.started_at), bool_and(b.id < a.id) FROM projector.runs a JOIN projector.runs b USING (tenant_id)
WHERE (b.projection_name, a.projection_name) IN (('base', 'middle'), ('middle', 'top'))
EOS
set('projector.workers = 1');

# ---- readers ----

# A fold's table stays the same table, with all dependent objects, and no reader ever
# sees a partial result.  Rows that were right are not touched.
use_database('readers');
fill('c', 20, 25);
mark('c', 'a12', 13, '{"gate": 1}');
sql("CALL make('$_', '$_')") for qw(fold columns lanes);
is_exact('backfill');
foreach my $name (qw(fold columns lanes))
{
	my $rows = $name eq 'lanes' ? 3 : 20;

	sql(qq{CREATE VIEW ${name}_view AS SELECT count(*) AS rows, sum(n) AS events, count(*) FILTER (WHERE path LIKE '%:%' OR path LIKE '1 2 3 %') AS good FROM $name;
		CREATE ROLE ${name}_reader; GRANT SELECT ON $name TO ${name}_reader; CREATE INDEX ${name}_n ON $name (n);
		CREATE TABLE ${name}_child (tenant_id text, id text, FOREIGN KEY (tenant_id, id) REFERENCES $name ON DELETE CASCADE);
		INSERT INTO ${name}_child SELECT tenant_id, id FROM $name});
	my $table = sql("SELECT oid, relfilenode, relacl, relowner FROM pg_class WHERE oid = '$name'::regclass");
	my ($one, $other) = split(/\n/, sql("SELECT id FROM $name ORDER BY id LIMIT 2"));
	my $untouched = sql("SELECT ctid, xmin, id FROM $name WHERE id <> '$one' ORDER BY id");

	sql("UPDATE $name SET path = 'spoilt', n = n WHERE id = '$one'");
	$untouched = sql("SELECT ctid, xmin, id FROM $name WHERE id <> '$one' ORDER BY id");
	close_gate(1);
	my $run = start_run($name, 'c');
	wait_at_gate(1, 1);
	is(sql("TABLE ${name}_view"), "$rows|500|" . ($rows - 1), "$name: in the middle of a build readers see what was there");
	is(sql("SELECT count(*) FROM pg_locks WHERE relation = '$name'::regclass AND mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')"), '0',
		'and nobody keeps them from it');
	open_gate(1);
	ends($run, 'completed', 'a run completes');
	is(sql("TABLE ${name}_view"), "$rows|500|$rows", 'it mends the row');
	is(sql("SELECT ctid, xmin, id FROM $name WHERE id <> '$one' ORDER BY id"), $untouched, 'and leaves the others alone');
	is(sql("SELECT oid, relfilenode, relacl, relowner FROM pg_class WHERE oid = '$name'::regclass"), $table, 'the table is the same');
	is(sql("SELECT count(*) FROM ${name}_child"), $rows, 'what refers to it is there');

	# readers that never stop
	append_to_file("$dir/read_$name.sql", "SELECT 1 / (rows = $rows AND events = 500)::int FROM ${name}_view;\n");
	my ($out, $err) = ('', '');
	my $reader = IPC::Run::start([ 'pgbench', '-n', '-t', 1500, '-f', "$dir/read_$name.sql", '-h', $node->host, '-p', $node->port, $db ],
		'<', \undef, '>', \$out, '2>', \$err);
	foreach my $round (1 .. 4)
	{
		sql("UPDATE $name SET path = 'spoilt' WHERE id >= '$other'");
		$run = start_run($name, 'c');
		wait_until("finished_at IS NOT NULL FROM projector.runs WHERE id = $run");
	}
	$reader->finish;
	is($err, '', 'no reader ever sees less');
	is_exact("$name, read all the time");
}

# ---- catching up ----

use_database('catching_up');
fill('c', 20, 25);
mark('c', 'a12', 13, '{"gate": 1}');
my @kinds = qw(handler statement fold columns lanes journal);
my $last = sql('SELECT max(log_seq) FROM projector.events');
foreach my $mode (qw(off paused))
{
	sql("CALL make('${_}_$mode', '$_', '$mode')") for @kinds;
}

# Up to a position, and then to the end.
is(sql(qq{SELECT count(*) FROM made, projector_start_run(name, 'c', 'catch_up', 120)}), '12', 'a run for each');
wait_until('NOT EXISTS (TABLE active)');
is(sql('SELECT state, mode, since_log_seq, until_log_seq, processed_events, last_log_seq, count(*) FROM projector.runs GROUP BY 1, 2, 3, 4, 5, 6'),
	'completed|catch_up|0|120|120|120|12', 'all have completed');
sql('INSERT INTO horizon VALUES (120)');
is_exact('caught up to a position');
sql("UPDATE horizon SET log_seq = 121; SELECT projector_start_run(name, 'c', 'catch_up', 121) FROM made");
is_exact('by one event');
sql("SELECT projector_start_run(name, 'c', 'catch_up', 100) FROM made");
is_exact('to where they are already');
is(sql('SELECT count(*), sum(processed_events) FROM projector.runs WHERE until_log_seq = 100'), '12|0', 'which is nothing to do');

# To the end: up to the first position that an open transaction may still fill.
my $open = $node->background_psql($db);
$open->query_safe('BEGIN;' . append('c', 'a03'));
sql(append('c', 'a04'));
sql("UPDATE horizon SET log_seq = $last; SELECT projector_start_run(name, 'c', 'catch_up') FROM made");
wait_until('NOT EXISTS (TABLE active)');
is(sql("SELECT coalesce(string_agg(name, ' '), '') FROM made WHERE (mode = 'off' OR kind IN ('lanes', 'journal')) AND differences(name) > 0"), '', 'caught up to what is settled');
sql('DELETE FROM horizon');
is(sql("SELECT coalesce(string_agg(name, ' '), '') FROM made WHERE NOT (mode = 'off' OR kind IN ('lanes', 'journal')) AND differences(name) > 0"), '', 'and with what was queued');
$open->query_safe('COMMIT');
$open->quit;
sql("SELECT projector_start_run(name, 'c', 'catch_up', $last + 1000) FROM made");
is_exact('caught up behind the end of the log');
is(sql("SELECT mode, paused, count(*) FROM projector.projections GROUP BY 1, 2 ORDER BY 1"), "async|t|6\noff|f|6", 'modes and pauses stay');
is(sql('SELECT count(*) FROM made m, LATERAL (SELECT count(*) FROM projector.events) e (n) WHERE
		(SELECT sum(last_sequence_number) FROM projector.offsets o WHERE o.projection_name = m.name) = e.n'), '12', 'so do the offsets say');

# Interrupted: killed, and cancelled.  In some modes the waiting events are queued.
sql("SELECT projector_drop(name) FROM made; DELETE FROM made");
sql("CALL make('${_}_follow', '$_', 'follow'); CALL make('${_}_async', '$_')") for qw(handler columns journal);
is_exact('new projections');
sql('SELECT projector_pause(name) FROM made');
fill('e', 20, 25);
mark('e', 'a12', 13, '{"gate": 2}');
my $waiting = sql('SELECT count(*) FROM projector.apply_outbox');
is($waiting, '1500', 'events wait');
foreach my $name (sort split(/\n/, sql('SELECT name FROM made')))
{
	close_gate(2);
	my $run = start_run($name, 'e', 'catch_up');
	wait_at_gate(2, 1);
	my $place = sql("SELECT processed_events FROM projector.runs WHERE id = $run");

	cmp_ok($place, '>', 0, "$name: stopped in the middle of a catch-up");
	is(sql("SELECT sum(n) FROM $name WHERE tenant_id = 'e'"), $place, 'what is done is done');
	if ($name eq 'handler_async')
	{
		kill 'KILL', sql('SELECT pid FROM at_gate');
		$node->poll_query_until($db, 'SELECT true');
		wait_at_gate(2, 1);
		run_is($run, 'state, processed_events', "running|$place", 'killed, it goes on');
		open_gate(2);
	}
	elsif ($name =~ /follow/)
	{
		my $cancel = begin("SELECT projector_cancel_run($run)");

		wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%projector_cancel_run($run)' AND wait_event_type = 'Lock')");
		open_gate(2);
		is(answer($cancel), 't', 'cancelled');
		run_is($run, 'state, processed_events', 'cancelled|' . ($place + 50), 'after one batch');
		is(sql("SELECT projector_catch_up('$name', 'e')"), 450 - $place, 'another catch-up does the rest');
		next;
	}
	else
	{
		open_gate(2);
	}
	ends($run, 'completed', 'it completes');
	run_is($run, 'processed_events, total_events', '500|500', 'with all events');
}
is_exact('caught up in runs that were interrupted');
sql('SELECT projector_resume(name) FROM made;' . append('e', 'a00') . append('c', 'a00'));
is_exact('and live');

# An event that fails is held, as in live apply; the run completes.
sql("CALL make('held', 'handler', 'off', '{\"max_attempts\": 1}')");
mark('e', 'a12', 13, '{"poison": true}');
sql("INSERT INTO broken VALUES ('raise')");
ends(start_run('held', 'e', 'catch_up'), 'completed', 'a failing event does not end a catch-up');
is(sql("SELECT differences('held', 'e')"), '1', 'it holds its aggregate');
is(sql("SELECT status, count(*) FROM projector.outbox WHERE projection_name = 'held' GROUP BY 1 ORDER BY 1"), "dead|1\nheld|12", 'the rest of which waits');
sql("DELETE FROM broken; SELECT projector_start_run('held', mode => 'rebuild')");
is_exact('rebuilt');

my $log = slurp_file($node->logfile);
ok($log !~ /leak|not closed|PANIC|TRAP|still referenced|could not serialize/, 'nothing has leaked');
is(scalar(() = $log =~ /terminated by signal/g), 2, 'and nothing crashed but what was killed');
$node->stop;
done_testing();
