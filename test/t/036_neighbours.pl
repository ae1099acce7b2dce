# Other extensions in the same server: each is loaded beside projector and does
# its usual work on the read models or on projector's own tables. The read models
# stay equal to the log. test/harness/neighbours installs them; one that Debian
# does not have for this version is skipped.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my ($libraries) = run_command([ 'pg_config', '--pkglibdir' ]);
my %found = map { $_ => -e "$libraries/$_.so" }
  qw(pg_stat_statements auto_explain pgaudit pg_cron pglogical plpgsql_check pg_repack pg_partman_bgw);

# What is set besides loading a library.
my %settings = (
	pg_stat_statements => 'pg_stat_statements.track = all',
	auto_explain => "auto_explain.log_min_duration = 0\nauto_explain.log_analyze = on\nauto_explain.log_nested_statements = on",
	pgaudit => "pgaudit.log = 'all'\npgaudit.log_relation = on\npgaudit.log_parameter = on",
	pg_cron => 'cron.use_background_workers = on');

my $node;

# Start a server that has loaded those of the libraries that exist, and use it.
sub start_with
{
	my ($name, @libraries) = @_;
	my @preload = grep { $found{$_} } @libraries;
	$node->stop if $node;
	$node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', join "\n",
		"shared_preload_libraries = '" . join(',', 'projector', 'plpgsql', @preload) . "'",
		"fsync = off", "max_worker_processes = 30", map { $settings{$_} // () } @preload);
	$node->start;
	use_node($node);
	return;
}

# A database with a projection of each kind, and what their tables should have.
sub create_models
{
	my ($database) = @_;
	sql_in('template1', "CREATE DATABASE $database") unless $database eq 'postgres';
	sql_in($database, <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, item_id text, on_hand bigint, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION stock_fold(s stock, e projector.event) RETURNS stock LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s.tenant_id := e.tenant_id;
    s.item_id := e.aggregate_id;
    s.on_hand := coalesce(s.on_hand, 0) + (e.payload->>'qty')::bigint;
    RETURN s;
END $$;
CREATE TABLE sums (LIKE stock INCLUDING ALL);
ALTER TABLE sums ALTER on_hand SET DEFAULT 0;
CREATE TABLE moves (tenant_id text, item_id text, seq bigint, qty bigint, at timestamptz NOT NULL, PRIMARY KEY (tenant_id, item_id, seq));
CREATE FUNCTION move(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moves VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, (e.payload->>'qty')::bigint, e.recorded_at);
END $$;
CREATE TABLE totals (tenant_id text PRIMARY KEY, qty bigint);
SELECT projector_create('stock', fold => 'stock_fold', targets => '{stock}');
SELECT projector_create('sums', fold_columns => '{"on_hand": "s.on_hand + (e.payload->>''qty'')::bigint"}', targets => '{sums}', mode => 'inline');
SELECT projector_create('moves', handler => 'move', targets => '{moves}', mode => 'follow');
SELECT projector_create('totals', targets => '{totals}', statement => $$
    INSERT INTO totals AS t SELECT tenant_id, sum((payload->>'qty')::bigint) FROM batch GROUP BY 1
    ON CONFLICT (tenant_id) DO UPDATE SET qty = t.qty + excluded.qty$$);
CREATE VIEW expected_stock AS SELECT tenant_id::text, aggregate_id::text AS item_id, sum((payload->>'qty')::bigint)::bigint AS on_hand
    FROM projector.events GROUP BY 1, 2;
CREATE VIEW differences AS
SELECT 'stock' AS model, * FROM ((SELECT tenant_id, item_id, on_hand FROM stock EXCEPT TABLE expected_stock) UNION ALL (TABLE expected_stock EXCEPT SELECT tenant_id, item_id, on_hand FROM stock)) d
UNION ALL SELECT 'sums', * FROM ((SELECT tenant_id, item_id, on_hand FROM sums EXCEPT TABLE expected_stock) UNION ALL (TABLE expected_stock EXCEPT SELECT tenant_id, item_id, on_hand FROM sums)) d
UNION ALL SELECT 'moves', * FROM ((SELECT tenant_id, item_id, sum(qty) FROM moves GROUP BY 1, 2 EXCEPT TABLE expected_stock) UNION ALL (TABLE expected_stock EXCEPT SELECT tenant_id, item_id, sum(qty) FROM moves GROUP BY 1, 2)) d
UNION ALL SELECT 'totals', tenant_id, '', qty FROM ((TABLE totals EXCEPT SELECT tenant_id, sum(on_hand) FROM expected_stock GROUP BY 1) UNION ALL (SELECT tenant_id, sum(on_hand) FROM expected_stock GROUP BY 1 EXCEPT TABLE totals)) d;
EOS
	return;
}

sub append
{
	my ($database, $n) = @_;
	sql_in($database, <<"EOS");
SELECT projector_append('t' || i % 2, 'item-' || i % 5, 'Moved', jsonb_build_object('qty', i)) FROM generate_series(1, $n) i
EOS
	return;
}

# All events are applied, once.
sub is_true
{
	my ($database, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($node->poll_query_until($database, <<'EOS'), "$name: all events are applied");
SELECT NOT EXISTS (SELECT FROM projector.status WHERE lag_events > 0 OR state <> 'ok')
EOS
	is(sql_in($database, 'TABLE differences'), '', "$name: the read models equal the log");
	return is(sql_in($database, q{SELECT string_agg(name, ' ') FROM projector.projections,
		projector_verify(name) v WHERE NOT v.matches}), '', "$name: verify agrees");
}

# neighbour(NAME, FUNCTION): in a database of that name.
sub neighbour
{
	my ($name, $test) = @_;
  SKIP:
	{
		skip "Debian has no $name for this version", 1 unless $found{$name};
		create_models($name);
		$test->($name);
	}
	return;
}

start_with('main', qw(pg_stat_statements auto_explain pgaudit pg_cron plpgsql_check));

neighbour(
	'pg_stat_statements',
	sub {
		my ($db) = @_;
		sql_in($db, 'CREATE EXTENSION pg_stat_statements; SELECT pg_stat_statements_reset()');
		append($db, 100);
		is_true($db, $db);
		sql_in($db, $_) foreach q{SELECT projector_rebuild('stock')},
		  q{SELECT * FROM projector_preview('stock', '{"options": {"batch_size": 10}}', 't1')},
		  q{SELECT projector_alter('stock', '{"options": {"batch_size": 10}}')},
		  q{SELECT count(*) FROM projector.status_by_tenant, projector.problems},
		  'ALTER TABLE stock ADD extra int', 'ALTER TABLE stock DROP extra', 'VACUUM projector.events';

		# The others are those of this file, and what its projections' code runs.
		my $known = '^(TABLE differences|ALTER TABLE stock|INSERT INTO (moves|totals)|SELECT [^;]*pg_stat_statements)';
		cmp_ok(sql_in($db, q{SELECT count(*) FROM pg_stat_statements WHERE query ~ 'projector\.projection_offsets'}),
			'>', 0, "$db: statements of projector are counted");
		is(sql_in($db, qq{SELECT query FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid
			WHERE datname = '$db' AND query !~ 'projector' AND query !~ '$known'}),
			'', "$db: each can be recognised");
	});

neighbour(
	'auto_explain',
	sub {
		my ($db) = @_;
		my $before = -s $node->logfile;
		append($db, 100);
		is_true($db, $db);
		like(substr(slurp_file($node->logfile), $before), qr/Query Text: .*projector\.apply_outbox/,
			'auto_explain: plans of projector are in the log');
	});

neighbour(
	'pgaudit',
	sub {
		my ($db) = @_;
		my $before = -s $node->logfile;
		sql_in($db, 'CREATE EXTENSION pgaudit');
		append($db, 100);
		is_true($db, $db);
		sql_in($db, q{SELECT projector_rebuild('moves')});
		my $log = substr(slurp_file($node->logfile), $before);
		like($log, qr/AUDIT: SESSION.*SELECT projector_append/, 'pgaudit: appends are audited');
		like($log, qr/AUDIT: SESSION.*WRITE,INSERT,TABLE,public\.moves/, 'pgaudit: what a handler writes is audited');
		like($log, qr/AUDIT: SESSION.*WRITE,INSERT,TABLE,public\.totals/, 'pgaudit: what a statement writes is audited');
		is_true($db, 'pgaudit, rebuilt');
	});

neighbour(
	'plpgsql_check',
	sub {
		my ($db) = @_;
		sql_in($db, 'CREATE EXTENSION plpgsql_check');
		is(sql_in($db, q{SELECT * FROM plpgsql_check_function('stock_fold(stock, projector.event)')}),
			'', 'plpgsql_check: nothing to say about a fold');
		is(sql_in($db, q{SELECT * FROM plpgsql_check_function('move(projector.event)')}),
			'', 'plpgsql_check: nothing to say about a handler');
		sql_in($db, <<'EOS');
CREATE FUNCTION wrong(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moves VALUES (e.tenant, e.aggregate_id, e.sequence_number);
END $$
EOS
		like(sql_in($db, q{SELECT * FROM plpgsql_check_function('wrong(projector.event)')}),
			qr/no field "tenant"/, 'plpgsql_check: a wrong field of the event is found');
		append($db, 100);
		is_true($db, $db);
	});

# Tables are rewritten while events are appended and applied.
neighbour(
	'pg_repack',
	sub {
		my ($db) = @_;
		sql_in($db, 'CREATE EXTENSION pg_repack');
		append($db, 100);
		is_true($db, $db);
		my $script = PostgreSQL::Test::Utils::tempdir() . '/append.sql';
		append_to_file($script,
			q{\set i random(1, 20)
			SELECT projector_append('t' || :i % 2, 'item-' || :i, 'Moved', '{"qty": 1}');});
		my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '2', '-T', '600', '-f', $script, '-h', $node->host, '-p', $node->port, $db ],
			'>', \my $out, '2>', \my $err);
		foreach my $table (qw(stock sums moves totals projector.events projector.apply_outbox projector.projection_offsets projector.projection_cursors))
		{
			my $filenode = sql_in($db, "SELECT pg_relation_filenode('$table')");
			$node->command_ok([ 'pg_repack', '-h', $node->host, '-p', $node->port, '-d', $db, '--wait-timeout=120', '-t', $table ],
				"pg_repack: $table while it is written");
			isnt(sql_in($db, "SELECT pg_relation_filenode('$table')"), $filenode, "pg_repack: $table has been rewritten");
		}
		$load->signal('INT');
		$load->finish;
		append($db, 100);
		is_true($db, $db);
	});

# A handler's target is partitioned by time, and partitions come and go.
neighbour(
	'pg_partman_bgw',
	sub {
		my ($db) = @_;
		sql_in($db, <<'EOS');
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE TABLE log (tenant_id text, item_id text, seq bigint, at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE FUNCTION log(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, (e.payload->>'at')::timestamptz);
END $$;
SELECT projector_create('log', handler => 'log', targets => '{log}', event_types => '{Logged}');
EOS
		my $native = sql_in($db, q{SELECT extversion LIKE '4.%' FROM pg_extension WHERE extname = 'pg_partman'}) eq 't';
		sql_in($db, $native
			? q{SELECT partman.create_parent('public.log', 'at', 'native', 'daily', p_premake => 2)}
			: q{SELECT partman.create_parent('public.log', 'at', '1 day', p_premake => 2)});
		my $log = q{SELECT projector_append('t', 'item', 'Logged', jsonb_build_object('at', now() + i * interval '1 day')) FROM generate_series(-1, 2) i};
		my $partitions = q{SELECT count(*) FROM pg_inherits WHERE inhparent = 'log'::regclass};
		sql_in($db, $log);
		ok($node->poll_query_until($db, 'SELECT count(*) = 4 FROM log'), 'pg_partman: events go to the partitions');
		my $before = sql_in($db, $partitions);
		sql_in($db, q{UPDATE partman.part_config SET premake = 4});
		sql_in($db, q{CALL partman.run_maintenance_proc()});
		cmp_ok(sql_in($db, $partitions), '>', $before, 'pg_partman: partitions are added while the projection runs');
		sql_in($db, $log);
		ok($node->poll_query_until($db, 'SELECT count(*) = 8 FROM log'), 'pg_partman: events go on');
		is(sql_in($db, q{SELECT bool_and(matches) FROM projector_verify('log')}), 't', 'pg_partman: verify agrees');
		$before = sql_in($db, $partitions);
		sql_in($db, q{UPDATE partman.part_config SET retention = '1 hour', retention_keep_table = false});
		sql_in($db, q{CALL partman.run_maintenance_proc()});
		cmp_ok(sql_in($db, $partitions), '<', $before, 'pg_partman: old partitions are dropped');
		sql_in($db, $log);
		ok($node->poll_query_until($db, q{SELECT lag_events = 0 FROM projector.status WHERE projection_name = 'log'}),
			'pg_partman: events still go on');
		is(sql_in($db, q{SELECT matches, differing_rows FROM projector_verify('log')}), 'f|2', 'pg_partman: verify misses the dropped rows');
	});

# Without workers, a job of pg_cron applies the events.
sub test_cron
{
	create_models('postgres');
	sql(q{ALTER DATABASE postgres SET projector.enabled = off});
	sql('CREATE EXTENSION pg_cron');
	sql(q{SELECT cron.schedule('drain', '@reboot', 'SELECT projector_drain()')});
	$node->restart;
	append('postgres', 100);
	$node->restart;
	is_true('postgres', 'pg_cron');
	comes_true(q{count(*) > 0 FROM cron.job_run_details WHERE status = 'succeeded'}, 'pg_cron: the job succeeded');
	return;
}

SKIP:
{
	skip 'Debian has no pg_cron for this version', 1 unless $found{pg_cron};
	test_cron();
}

# Read models are replicated to another database. (Debian 12's pglogical and
# plpgsql_check crash if loaded together, with or without projector.)
start_with('replicated', 'pglogical');

neighbour(
	'pglogical',
	sub {
		my ($db) = @_;

		# Since 2026 the server names the libraries that may decode the log.
		if (sql(q{SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'}))
		{
			$node->append_conf('postgresql.conf', "output_plugin_libraries = 'pglogical_output'");
			$node->reload;
		}
		my $here = 'host=' . $node->host . ' port=' . $node->port;
		sql_in($db, <<"EOS");
CREATE EXTENSION pglogical;
SELECT pglogical.create_node('provider', '$here dbname=$db');
SELECT pglogical.replication_set_add_table('default', t) FROM unnest('{stock,sums,totals}'::regclass[]) t;
EOS
		append($db, 50);
		sql_in('template1', 'CREATE DATABASE copy');
		sql_in('copy', <<"EOS");
CREATE EXTENSION pglogical;
CREATE TABLE stock (tenant_id text, item_id text, on_hand bigint, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, item_id));
CREATE TABLE sums (LIKE stock INCLUDING ALL);
CREATE TABLE totals (tenant_id text PRIMARY KEY, qty bigint);
SELECT pglogical.create_node('subscriber', '$here dbname=copy');
SELECT pglogical.create_subscription('subscription', '$here dbname=$db');
EOS
		ok($node->poll_query_until('copy', q{SELECT status = 'replicating' FROM pglogical.show_subscription_status()}),
			'pglogical: it replicates');
		append($db, 50);
		is_true($db, $db);
		sql_in($db, q{SELECT projector_rebuild('stock')});
		is_true($db, 'pglogical, rebuilt');
		foreach my $table (qw(stock sums totals))
		{
			my $rows = "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM $table t";
			my $here_now = sql_in($db, $rows);
			ok($node->poll_query_until('copy', "SELECT ($rows) = '$here_now'"), "pglogical: $table is replicated");
		}
	});

done_testing();
