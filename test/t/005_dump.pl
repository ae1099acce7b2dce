# A dump contains the log, the registry, the checkpoints and the work list.
# Restored into another database, projections are dormant.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'projector'\nprojector.enabled = off");
$node->start;

$node->safe_psql('postgres', q{
	CREATE EXTENSION projector;
	CREATE TABLE balance (tenant_id text, aggregate_id text, events bigint,
		total bigint, PRIMARY KEY (tenant_id, aggregate_id));
	CREATE TABLE poison (aggregate_id text);
	INSERT INTO poison VALUES ('bad');
	CREATE FUNCTION apply_balance(e projector.event) RETURNS void
	LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO balance AS b VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint)
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
		SET events = b.events + 1, total = b.total + excluded.total;
		IF EXISTS (SELECT FROM poison p WHERE p.aggregate_id = e.aggregate_id) THEN
			RAISE EXCEPTION 'poisoned';
		END IF;
	END $$;
	SELECT projector_create('inline', handler => 'apply_balance', targets => '{balance}', mode => 'inline',
		event_types => '{Added,Taken}', options => '{"retry_base": "10 min", "idempotent": true, "shared_targets": true}');
	SELECT projector_create('async', handler => 'apply_balance', targets => '{balance}', event_types => '{Queued}',
		options => '{"shared_targets": true}');
	SELECT projector_create('gone', handler => 'apply_balance');
	SELECT projector_drop('gone');
	SELECT projector_append(t, a, 'Added', to_jsonb(n), metadata => '{"ü": "€"}')
	FROM unnest('{acme,"glo bex","émile"}'::text[]) t, unnest('{a,b,bad}'::text[]) a, generate_series(1, 3) n;
	SELECT projector_append('acme', 'q', 'Queued', to_jsonb(n)) FROM generate_series(1, 5) n;
	SELECT projector_pause('inline', 'glo bex', 'a reason');
	SELECT projector_set_mode('async', 'off', 'elsewhere');
	SELECT projector_append('glo bex', 'a', 'Added', '7');
	SELECT projector_drain(max_events => 2);
	SELECT projector_start_run('inline', tenant_id => 'acme');
	SELECT projector_cancel_run(projector_start_run('async', 'émile', 'catch_up'));
	SELECT projector_start_run('async', 'acme', 'catch_up', 20);
});

my @tables = qw(events projections projection_offsets projection_cursors apply_outbox projection_failures projection_runs);
my $contents = join(' UNION ALL ', map {
	"SELECT '$_' AS t, to_jsonb(x)::text AS r FROM projector.$_ x" } @tables);
my $everything = "SELECT * FROM ($contents) a ORDER BY t COLLATE \"C\", r COLLATE \"C\"";
my $sequences = q{SELECT c.relname, last_value FROM pg_sequences s JOIN pg_class c ON c.relname = s.sequencename
	WHERE schemaname = 'projector' ORDER BY 1};
my $settings = q{SELECT unnest(extconfig)::regclass::text FROM pg_extension WHERE extname = 'projector' ORDER BY 1};
my $before = $node->safe_psql('postgres', $everything);
my $sequences_before = $node->safe_psql('postgres', $sequences);
cmp_ok(scalar(split /\n/, $node->safe_psql('postgres', "SELECT t, count(*) FROM ($contents) a GROUP BY 1")), '==', 7,
	'there is something in every table');

my $dump = $node->basedir . '/dump';
foreach my $format ('plain', 'custom', 'directory')
{
	my $copy = "copy_$format";

	$node->command_ok([ 'pg_dump', '-F', $format, '-f', "$dump.$format", 'postgres' ], "$format: dump");
	$node->safe_psql('postgres', "CREATE DATABASE $copy TEMPLATE template0");
	if ($format eq 'plain')
	{
		$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $copy, '-f', "$dump.$format" ], "$format: restore");
	}
	else
	{
		$node->command_ok([ 'pg_restore', '--exit-on-error', ($format eq 'directory' ? ('-j', 4) : ()), '-d', $copy, "$dump.$format" ],
			"$format: restore");
	}
	is($node->safe_psql($copy, $everything), $before, "$format: every row is as it was");
	is($node->safe_psql($copy, $sequences), $sequences_before, "$format: and every sequence");
	is($node->safe_psql($copy, 'SELECT * FROM balance ORDER BY 1, 2'), $node->safe_psql('postgres', 'SELECT * FROM balance ORDER BY 1, 2'),
		"$format: the read model has not been touched");

	# Dormant: the log is still written and checked, nothing else happens.
	my $other_tables = join(' UNION ALL ', map { "SELECT '$_' AS t, to_jsonb(x)::text AS r FROM projector.$_ x" } grep { $_ ne 'events' } @tables);
	my $others = "SELECT * FROM ($other_tables) a ORDER BY t COLLATE \"C\", r COLLATE \"C\"";
	my $others_before = $node->safe_psql($copy, $others);
	is($node->safe_psql($copy, q{SELECT projector_append('acme', 'a', 'Added', '100'), projector_append('new', 'a', 'Queued', '100')}), '4|1',
		"$format: an append in the copy writes the event");
	my $model = $node->safe_psql($copy, 'SELECT sum(events), sum(total) FROM balance');
	is($node->safe_psql($copy, $others), $others_before, "$format: and nothing else");
	is($node->safe_psql($copy, 'SELECT projector_drain()'), '0', "$format: a drain does nothing");
	is($node->safe_psql($copy, $others), $others_before, "$format: not even to a cursor");
	is($node->safe_psql($copy, 'SELECT sum(events), sum(total) FROM balance'), $model, "$format: nor to the read model");
	my ($ret, $out, $err) = $node->psql($copy, q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		VALUES ('acme', 'a', 9, 'Added', '1')}, extra_params => ['-v', 'VERBOSITY=sqlstate']);
	like($err, qr/PJ002/, "$format: the log is checked in the copy too");
	foreach my $command (q{projector_drain('inline')}, q{projector_retry('inline', 'acme', 'bad', 1)}, q{projector_reset('inline')},
		q{projector_start_run('inline')}, q{projector_start_run(NULL)})
	{
		($ret, $out, $err) = $node->psql($copy, "SELECT $command", extra_params => ['-v', 'VERBOSITY=sqlstate']);
		like($err, qr/55000/, "$format: $command is refused");
	}
}

# After adopt, a copy continues from its checkpoints, and reads from the log what
# has been appended since.
foreach my $copy ('copy_plain', 'copy_directory')
{
	is($node->safe_psql($copy, 'SELECT projector_adopt()'), '2', "$copy: both projections are adopted");
	is($node->safe_psql($copy, 'SELECT projector_adopt()'), '0', "$copy: once");
	is($node->safe_psql($copy, "SELECT projection_name, tenant_id, state, error_code FROM projector.runs ORDER BY id"),
		"inline|acme|cancelled|57014\nasync|émile|cancelled|57014\nasync|acme|cancelled|57014", "$copy: nobody waits for the runs");
	is($node->safe_psql($copy, q{SELECT projector_start_run('inline', tenant_id => 'new')}), '4', "$copy: the next has the next number");
	$node->safe_psql($copy, q{
		DELETE FROM poison;
		SELECT projector_resume('inline', 'glo bex');
		SET projector.clock_offset = 36000;
		SELECT projector_drain();
		SELECT projector_append('acme', 'a', 'Added', '1000');
		SELECT projector_drain();
	});
	is($node->safe_psql($copy, 'SELECT sum(events), sum(total) FROM balance'),
		$node->safe_psql($copy, 'SELECT count(*), sum(payload::bigint) FROM projector.events'),
		"$copy: the read model has come to the log, each event once");
	is($node->safe_psql($copy, 'SELECT count(*) FROM projector.apply_outbox'), '0', "$copy: nothing is left to do");
}

# In the original database everything continues.
is($node->safe_psql('postgres', $everything), $before, 'the dump has changed nothing at home');
$node->safe_psql('postgres', q{
	DELETE FROM poison;
	SELECT projector_resume('inline', 'glo bex');
	SET projector.clock_offset = 36000;
	SELECT projector_drain();
});
is($node->safe_psql('postgres', 'SELECT sum(events), sum(total) FROM balance'),
	$node->safe_psql('postgres', 'SELECT count(*), sum(payload::bigint) FROM projector.events'),
	'at home a drain brings the read model to the log');

# Dumped twice: the copy of a copy.
$node->command_ok([ 'pg_dump', '-F', 'custom', '-f', "$dump.again", 'copy_custom' ], 'a dump of the copy');
$node->safe_psql('postgres', 'CREATE DATABASE again TEMPLATE template0');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'again', "$dump.again" ], 'can be restored');
is($node->safe_psql('again', $everything), $node->safe_psql('copy_custom', $everything), 'and is equal');

# CREATE DATABASE … TEMPLATE makes a copy too.
$node->safe_psql('template1', 'CREATE DATABASE twin TEMPLATE postgres');
$node->safe_psql('twin', q{SELECT projector_append('acme', 'a', 'Added', '100')});
is($node->safe_psql('twin', q{SELECT count(*) FROM projector.apply_outbox}), '0', 'a copied database is dormant too');
my ($ret, $out, $err) = $node->psql('twin', q{SELECT projector_set_mode('inline', 'async')}, extra_params => ['-v', 'VERBOSITY=sqlstate']);
like($err, qr/55000/, 'and its modes cannot be changed');
is($node->safe_psql('twin', q{SELECT count(*) FROM projector.projection_cursors WHERE tenant_id = 'acme' AND state <> 'live'}), '0',
	'its tenant had been live');
is($node->safe_psql('twin', q{SELECT string_agg(state, ' ' ORDER BY id) FROM projector.runs}), 'queued cancelled queued', 'its runs are as they were');
is($node->safe_psql('twin', q{SELECT projector_adopt()}), '2', 'until it is adopted');
is($node->safe_psql('twin', q{SELECT string_agg(state, ' ' ORDER BY id) FROM projector.runs}), 'cancelled cancelled cancelled', 'then they are cancelled');
$node->safe_psql('twin', q{SELECT projector_drain()});
is($node->safe_psql('twin', 'SELECT sum(events), sum(total) FROM balance'),
	$node->safe_psql('twin', 'SELECT count(*), sum(payload::bigint) FROM projector.events'),
	'then what was appended meanwhile is applied');

$node->stop;

# ---- in the middle of runs ----

# Two runs are active when the workers stop: a handler that is rebuilt in place and a fold that is
# built aside.  There is a backlog, and there are failures.
$node = PostgreSQL::Test::Cluster->new('runs');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'projector'\nprojector.workers = 2\nprojector.naptime = 1h\nmax_worker_processes = 30\nautovacuum = off");
$node->start;
use_node($node);

# Start or stop workers.
sub work
{
	my ($on) = @_;
	sql_in('template1', 'ALTER SYSTEM SET projector.enabled = ' . ($on ? 'on' : 'off'));
	$node->reload;
	return;
}

sql_in('postgres', <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE poison (id text);
CREATE FUNCTION try(e projector.event) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF e.payload ? 'gate' THEN
		PERFORM pg_advisory_xact_lock_shared(1);
	END IF;
	IF EXISTS (SELECT FROM poison p WHERE p.id = e.aggregate_id || e.sequence_number) THEN
		RAISE EXCEPTION 'poisoned';
	END IF;
	RETURN 1;
END $$;
CREATE TABLE folded (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '', last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE handled (tenant_id text, id text, n bigint, path text, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS $$
	INSERT INTO handled AS h VALUES (e.tenant_id, e.aggregate_id, try(e), e.sequence_number || ' ')
	ON CONFLICT (tenant_id, id) DO UPDATE SET n = h.n + excluded.n, path = h.path || excluded.path $$;
SELECT projector_create('folded', targets => '{folded}', fold_columns => '{"n": "s.n + try(e)", "path": "s.path || e.sequence_number || '' ''"}',
	options => '{"batch_size": 4, "retry_base": "10 min", "on_rebuild_error": "hold"}');
SELECT projector_create('handled', targets => '{handled}', handler => 'handle', options => '{"batch_size": 4, "retry_base": "10 min", "on_rebuild_error": "hold"}');
CREATE VIEW oracle AS SELECT tenant_id::text, aggregate_id::text AS id, count(*) AS n, string_agg(sequence_number || ' ', '' ORDER BY sequence_number) AS path
	FROM projector.events GROUP BY 1, 2;
CREATE VIEW differences AS
	(SELECT tenant_id, id, n, path FROM folded EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL SELECT tenant_id, id, n, path FROM folded) UNION ALL
	(TABLE handled EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE handled);
SELECT projector_append(t, 'item-' || a, 'E', CASE WHEN (t, a, n) = ('acme', 6, 1) THEN '{"gate": 1}' ELSE '{}' END::jsonb)
FROM unnest('{acme,beta}'::text[]) t, generate_series(1, 9) a, generate_series(1, 3) n;
EOS
wait_until('count(*) = 0 FROM differences', 'postgres');
sql_in('postgres', q{SELECT projector_start_run('folded', tenant_id => 'beta'), projector_start_run('handled', 'beta', 'catch_up')});
wait_until("count(*) = 2 FROM projector.runs WHERE state = 'completed'", 'postgres');
sql_in('postgres', q{INSERT INTO poison VALUES ('item-22'), ('item-44'); UPDATE folded SET n = 100 WHERE tenant_id = 'acme' AND id = 'item-8';
	SELECT projector_append('beta', 'item-4', 'E', '{}') FROM generate_series(1, 2)});
wait_until("count(*) = 2 FROM projector.outbox WHERE status = 'failed'", 'postgres');
my ($in, $out2) = ("SELECT pg_advisory_lock(1);\n\\echo done\n", '');
my $gate = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out2, '2>', \my $gate_err);
$gate->pump until $out2 =~ /done/;
sql_in('postgres', q{SELECT projector_start_run('folded', tenant_id => 'acme'), projector_start_run('handled', tenant_id => 'acme')});
wait_until("count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (0, 1, 1) AND NOT granted", 'postgres');
sql_in('postgres', q{SELECT projector_append('acme', 'item-' || a, 'E', '{}') FROM generate_series(1, 12, 2) a});
work(0);
$in .= "\\q\n";
$gate->finish;
wait_until("NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'projector worker')", 'template1');

my $model = 'SELECT * FROM (SELECT 1, tenant_id, id, n, path FROM folded UNION ALL SELECT 2, * FROM handled) m ORDER BY 1, 2, 3';
my $active = "SELECT projection_name, tenant_id, mode, state FROM projector.runs WHERE state IN ('queued', 'running') ORDER BY id";
my $builds = "SELECT count(*) FROM pg_class WHERE relnamespace = 'projector'::regnamespace AND relkind = 'r' AND relname LIKE 'build%'";
is(sql_in('postgres', $active), "folded|acme|rebuild|running\nhandled|acme|rebuild|running", 'runs: in the middle of two');
is(sql_in('postgres', 'SELECT bool_and(processed_events BETWEEN 4 AND 24), bool_or(built_aside), bool_and(built_aside) FROM projector.projection_runs WHERE state = \'running\''),
	't|t|f', 'runs: batches of both have been committed, one of them is built aside');
is(sql_in('postgres', $builds), '1', 'runs: in a table of its own');
is(sql_in('postgres', 'SELECT count(*) > 0, count(*) FILTER (WHERE projection_id < 0) > 0 FROM projector.projection_offsets'), 't|t', 'runs: offsets of both');
is(sql_in('postgres', 'SELECT count(DISTINCT projection_id), bool_or(projection_id < 0) FROM projector.projection_failures'), '3|t', 'runs: failures of both');
is(sql_in('postgres', "SELECT count(DISTINCT status), bool_or(projection_id < 0) FROM projector.apply_outbox"), '2|t', 'runs: items of both, failed and pending');
$before = sql_in('postgres', $everything);
$sequences_before = sql_in('postgres', $sequences);
my $model_before = sql_in('postgres', $model);
my $next_run = 1 + sql_in('postgres', 'SELECT max(id) FROM projector.projection_runs');
$dump = $node->basedir . '/dump';
foreach my $format ('plain', 'custom', 'directory', 'template')
{
	my $copy = "copy_$format";

	if ($format eq 'template')
	{
		$node->safe_psql('template1', "CREATE DATABASE $copy TEMPLATE postgres");
	}
	else
	{
		$node->command_ok([ 'pg_dump', '-F', $format, '-f', "$dump.$format", ($format eq 'directory' ? ('-j', 4) : ()), 'postgres' ], "runs, $format: dump");
		$node->safe_psql('template1', "CREATE DATABASE $copy TEMPLATE template0");
		$node->command_ok($format eq 'plain' ? [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $copy, '-f', "$dump.$format" ] :
			  [ 'pg_restore', '--exit-on-error', ($format eq 'directory' ? ('-j', 4) : ()), '-d', $copy, "$dump.$format" ], "runs, $format: restore");
	}
	is(sql_in($copy, $everything), $before, "runs, $format: every row is as it was");
	is(sql_in($copy, $sequences), $sequences_before, "runs, $format: and every sequence");
	is(sql_in($copy, $model), $model_before, "runs, $format: the read models are as they were");
	is(sql_in($copy, $builds), $format eq 'template' ? '1' : '0', "runs, $format: what was built aside is in a copy, and not in a dump");

	# dormant
	my ($rc, $stdout, $stderr) = $node->psql($copy, q{SELECT projector_start_run('handled')}, extra_params => ['-v', 'VERBOSITY=sqlstate']);
	like($stderr, qr/55000/, "runs, $format: no run can be started");
	is(sql_in($copy, 'SELECT projector_drain()'), '0', "runs, $format: a drain does nothing");
	is(sql_in($copy, $everything), $before, "runs, $format: nothing has changed by it");
	is(sql_in($copy, 'SELECT count(*) FROM projector.progress'), '2', "runs, $format: both are shown as running");
}
unlike(slurp_file("$dump.plain"), qr/build_\d/, 'runs: nothing in a dump speaks of what was built aside');

# In the original the runs continue, and the read models equal the log; in the copies nothing happens.
work(1);
wait_until("count(*) = 4 FROM projector.runs WHERE state = 'completed'", 'postgres');
wait_until("count(*) = 0 FROM projector.outbox WHERE status = 'pending'", 'postgres');
is(sql_in('postgres', 'SELECT tenant_id, id, count(*) FROM differences GROUP BY 1, 2 ORDER BY 1, 2'), "acme|item-2|4\nbeta|item-4|4", 'runs: at home they go on, but for those that fail');
foreach my $copy ('copy_plain', 'copy_custom', 'copy_directory', 'copy_template')
{
	# the launcher has started a worker to check
	wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'projector worker' AND datname = current_database())", $copy);
	is(sql_in($copy, $everything), $before, "runs, $copy: workers leave it alone");
}
foreach my $copy ('copy_plain', 'copy_custom', 'copy_directory', 'copy_template')
{
	is(sql_in($copy, 'SELECT projector_adopt()'), '2', "runs, $copy: both projections are adopted");
	is(sql_in($copy, "SELECT state, error_code, error_message, count(*), count(finished_at) FROM projector.runs GROUP BY 1, 2, 3 ORDER BY 1"),
		"cancelled|57014|its database was copied while the run was active|2|2\ncompleted|||2|2", "runs, $copy: runs are not gone on with");
	is(sql_in($copy, 'SELECT (SELECT count(*) FROM projector.projection_offsets WHERE projection_id < 0), (SELECT count(*) FROM projector.apply_outbox WHERE projection_id < 0),
		(SELECT count(*) FROM projector.projection_failures WHERE projection_id < 0), (SELECT count(*) FROM projector.projection_cursors WHERE run_id IS NOT NULL)'),
		'0|0|0|0', "runs, $copy: nothing is left of them");
	is(sql_in($copy, $builds), '0', "runs, $copy: nor what was built aside");
	sql_in($copy, q{DELETE FROM poison; SELECT projector_append('acme', 'item-1', 'E', '{}'); SELECT projector_append('gamma', 'item-1', 'E', '{}')});
	wait_until("count(*) = 0 FROM projector.projection_cursors WHERE state <> 'live'", $copy);
	sql_in($copy, q{SELECT projector_requeue(projection_name, tenant_id, aggregate_id, sequence_number) FROM projector.outbox WHERE status = 'failed'});
	wait_until('count(*) = 0 FROM projector.apply_outbox', $copy);

	# the fold's row that was changed by hand is still wrong, as before the run
	is(sql_in($copy, 'SELECT tenant_id, id, n FROM differences ORDER BY n'), "acme|item-8|3\nacme|item-8|100", "runs, $copy: all else is what the log says");
	is(sql_in($copy, q{SELECT projector_start_run('folded', tenant_id => 'acme')}), $next_run, "runs, $copy: the next has the next number");
	wait_until("state = 'completed' FROM projector.runs WHERE id = $next_run", $copy);
	is(sql_in($copy, 'SELECT * FROM differences'), '', "runs, $copy: and completes");
	is(sql_in($copy, $builds), '0', "runs, $copy: leaving nothing");
}

$node->stop;
done_testing();
