# How far long operations are, as other sessions see it, and the rate of runs.  Events whose
# payload names a gate (an advisory lock) stop whoever applies them, so that there is time to
# look.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $node;

sub make_node
{
	my ($name, $conf) = @_;
	$node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', "fsync = off\nautovacuum = off\nmax_prepared_transactions = 10\nprojector.naptime = 1h\n$conf");
	$node->start;
	use_node($node);
	return;
}

# Start a command in the background.
sub begin
{
	my ($text) = @_;
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $text ], '<', \undef, '>', \$out, '2>', \$err);
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

sub set
{
	my ($setting) = @_;
	sql("ALTER SYSTEM SET $setting");
	$node->reload;
	return;
}

sub close_gate { return sql(q{BEGIN; SELECT pg_advisory_xact_lock(1); PREPARE TRANSACTION 'gate'}); }
sub open_gate { return sql(q{ROLLBACK PREPARED 'gate'}); }

# Which process waits at the gate?
sub at_gate
{
	wait_until('count(*) = 1 FROM at_gate');
	return sql('SELECT pid FROM at_gate');
}

sub append
{
	my ($n, $tenant, $aggregate, $payload) = @_;
	return sql(qq{SELECT count(projector_append('$tenant', '$aggregate', 'Added', '$payload')) FROM generate_series(1, $n)});
}

my $setup = <<'EOS';
CREATE EXTENSION projector;
CREATE VIEW at_gate AS
	SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND (classid, objid, objsubid) = (0, 1, 1);
CREATE FUNCTION pass(payload jsonb) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF payload ? 'gate' THEN
		PERFORM pg_advisory_xact_lock_shared(1);
	END IF;
	RETURN 1;
END $$;
CREATE TABLE list (tenant_id text, id text, n bigint);
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM public.pass(e.payload);
	INSERT INTO public.list VALUES (e.tenant_id, e.aggregate_id, e.sequence_number);
END $$;
SELECT projector_create('list', handler => 'handle', targets => '{list}', options => '{"batch_size": 2, "idempotent": true, "timeout": "10 min"}');
CREATE TABLE counts (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
	PRIMARY KEY (tenant_id, id));
EOS

# What is shown of the only session that does something.
my $shown = q{SELECT pid, projection_name, tenant_id, mode, state, phase, events_done, percent > 0 AND percent < 100, tenants_done, tenants_total
	FROM projector.progress WHERE pid IS NOT NULL};

# Operations of a session that waits at the gate in the fifth event of acme, and then go on.
sub look_at_sessions
{
	my ($which) = @_;
	for my $case (
		[ q{SELECT projector_rebuild('list', 'acme')}, 'list|acme|rebuild|running|replaying events|4|t|0|1', '6' ],
		[ q{SELECT projector_rebuild('list')}, 'list|acme|rebuild|running|replaying events|4|t|0|2', '9' ],
		[ q{SELECT matches FROM projector_verify('list', 'acme')}, 'list|acme|verify|running|replaying events|4|t|0|1', 't' ],
		[ q{SELECT count(*) FROM projector_preview('list', '{"event_types": ["Added"]}', 'acme')}, 'list|acme|preview|running|replaying events|4|t|0|1', '0' ],
	  )
	{
		my ($command, $row, $result) = @$case;
		close_gate();
		my $session = begin($command);
		my $pid = at_gate();
		is(sql($shown), "$pid|$row", "$which: another session sees $command");
		is(sql($shown, 'other'), '', 'but not in another database');
		like(sql("SELECT query FROM pg_stat_activity WHERE pid = $pid"), qr/^\Q$command\E/, 'pg_stat_activity has its own text');
		open_gate();
		is(answer($session), $result, 'it comes to its end');
		is(sql($shown), '', 'and is no longer shown');
	}
	return;
}

# ---- sessions, without preloading ----

make_node('plain', "projector.autostart = off\nprojector.enabled = off\nsession_preload_libraries = 'projector'\n");
$node->safe_psql('postgres', 'CREATE DATABASE other');
sql('CREATE EXTENSION projector', 'other');
sql($setup);
append(4, 'acme', 'a', '{}');
append(1, 'acme', 'a', '{"gate": 1}');
append(1, 'acme', 'a', '{}');
append(3, 'beta', 'b', '{}');
sql('SELECT projector_drain()');
look_at_sessions('without preloading');

# A cancel, and the end of the session.
for my $end ('cancel', 'terminate')
{
	close_gate();
	my $session = begin(q{SELECT projector_rebuild('list', 'acme')});
	my $pid = at_gate();
	isnt(sql($shown), '', "before $end it is shown");
	sql("SELECT pg_${end}_backend($pid)");
	answer($session);
	comes_true(q{NOT EXISTS (SELECT FROM projector.progress WHERE pid IS NOT NULL)}, "after $end it is not");
	open_gate();
}

# ---- very many tenants ----

sql(<<'EOS');
SELECT projector_pause('list');
INSERT INTO projector.projection_cursors (projection_id, tenant_id, last_log_seq, state)
	SELECT p.projection_id, 'many ' || t, CASE t % 4 WHEN 0 THEN 0 ELSE p.handover_log_seq END, CASE t % 4 WHEN 0 THEN 'replaying' ELSE 'live' END
	FROM generate_series(1, 60000) t, projector.projections p WHERE p.name = 'list';
EOS
is( sql(q{SELECT state, percent BETWEEN 70 AND 80, tenants_total BETWEEN 50000 AND 70000, tenants_done BETWEEN 35000 AND 55000
	FROM projector.progress WHERE mode = 'backfill'}), 'paused|t|t|t', 'of very many tenants a part is looked at');
$node->stop;

# ---- workers ----

make_node('workers', "shared_preload_libraries = 'projector'\nprojector.enabled = off\n");
$node->safe_psql('postgres', 'CREATE DATABASE other');
sql('CREATE EXTENSION projector', 'other');
sql($setup);
append(4, 'acme', 'a', '{}');
append(1, 'acme', 'a', '{"gate": 1}');
append(1, 'acme', 'a', '{}');
append(3, 'beta', 'b', '{}');
sql('SELECT projector_drain()');
look_at_sessions('with preloading');

# A new projection: its backfill is shown, and what the worker does.
sql(q{SELECT projector_reset('list')});
is(sql(q{SELECT mode, state, percent, tenants_done, tenants_total FROM projector.progress}), 'backfill|queued|0.0|0|2', 'a backfill waits for a worker');
close_gate();
set('projector.enabled = on');
my $pid = at_gate();
is(sql(q{SELECT projection_name, tenant_id, mode, state, percent > 0 AND percent < 100, tenants_total FROM projector.progress}),
	'list||backfill|running|t|2', 'its backfill is shown');
is(sql("SELECT query FROM pg_stat_activity WHERE pid = $pid"), 'backfill of projection "list", tenant "acme": 44 %', 'and what the worker does');
open_gate();
comes_true('NOT EXISTS (SELECT FROM projector.progress)', 'until it is done');

# A run.
sql('ANALYZE projector.events');
close_gate();
my $run = sql(q{SELECT projector_start_run('list', 'acme')});
$pid = at_gate();
is(sql("SELECT query FROM pg_stat_activity WHERE pid = $pid"), qq{run $run: rebuild of projection "list", tenant "acme": 66 %}, 'the worker says how far a run is');
is( sql('SELECT run_id, projection_name, tenant_id, mode, state, percent, pid, phase, events_done, events_total, tenants_total, since IS NOT NULL FROM projector.progress'),
	"$run|list|acme|rebuild|running|66.7|||4|6||t", 'and the view');
open_gate();
comes_true("state = 'completed' FROM projector.runs WHERE id = $run", 'it ends');

# ---- the rate of runs ----

my $done = q{finished_at IS NOT NULL FROM projector.runs ORDER BY id DESC LIMIT 1};

# A run of so many events takes at least as long as the rate says.
sub takes_time
{
	my ($start, $events, $rate, $name) = @_;
	set("projector.run_max_rate = $rate");
	wait_until("SELECT setting = '$rate' FROM pg_settings WHERE name = 'projector.run_max_rate'");
	sql($start);
	wait_until($done);
	my $last = 'FROM projector.runs ORDER BY id DESC LIMIT 1';
	is(sql("SELECT state, processed_events $last"), "completed|$events", "$name: it is complete");
	my $least = $events / $rate;
	is(sql("SELECT extract(epoch FROM finished_at - started_at) >= $least $last"), 't', "$name: it took at least $least s")
	  or diag(sql("SELECT finished_at - started_at $last"));
	return;
}

sql(q{SELECT projector_create('counts', fold_columns => '{"n": "s.n + 1"}', targets => '{counts}', event_types => '{Added}')});
append(50, 'slow', "s$_", '{}') for 1 .. 4;
wait_until(q{count(*) = 0 FROM projector.apply_outbox});
wait_until(q{NOT EXISTS (SELECT FROM projector.progress)});
takes_time(q{SELECT projector_start_run('list', 'slow')}, 200, 100, 'in place');
takes_time(q{SELECT projector_start_run('counts', 'slow')}, 200, 100, 'aside');
sql(q{ALTER SYSTEM SET projector.slice_events = 60});
$node->reload;
sql('ANALYZE projector.events');
takes_time(q{SELECT projector_start_run('counts', 'slow')}, 200, 130, 'in slices');
is(sql('SELECT slice_count > 1 FROM projector.projection_runs ORDER BY id DESC LIMIT 1'), 't', 'it was in slices');
sql(q{SELECT projector_set_mode('counts', 'off')});
append(20, 'slow', 's1', '{}');
takes_time(q{SELECT projector_start_run('counts', 'slow', 'catch_up')}, 20, 9, 'a catch-up, slowly');
sql(q{SELECT projector_set_mode('counts', 'async')});
wait_until(q{NOT EXISTS (SELECT FROM projector.progress)});
is(sql(q{SELECT n = 70 FROM counts WHERE id = 's1'}), 't', 'nothing was applied twice');

# The worker is free meanwhile: it is in no transaction, holds no locks, and applies live events.
set('projector.run_max_rate = 1');
$run = sql(q{SELECT projector_start_run('counts', 'slow')});
comes_true("processed_events > 0 FROM projector.runs WHERE id = $run", 'a run at one event per second');
comes_true(q{EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = 'postgres' AND state = 'idle' AND xact_start IS NULL)},
	'between its batches the worker is idle');
is( sql(q{SELECT projector_append('live', 'l', 'Added', '{}'); SELECT projector_wait('list', 'live', 'l', 1)}), "1\napplied",
	'events of another projection are applied meanwhile');
is(sql(q{SELECT projector_append('live', 'l', 'Added', '{}'); SELECT projector_wait('counts', 'live', 'l', 2)}), "2\napplied", 'and of the same one');
is(sql("SELECT state, processed_events < 50 FROM projector.runs WHERE id = $run"), 'running|t', 'the run still has long to go');

# A new rate acts on a run that is running.
set('projector.run_max_rate = 0');
comes_true("state = 'completed' FROM projector.runs WHERE id = $run", 'without a rate it is soon done');
is(sql(q{SELECT count(*), sum(n) FROM counts WHERE tenant_id = 'slow'}), '4|220', 'and complete');
$node->stop;

done_testing();
