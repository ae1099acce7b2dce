# A server that does not preload the library: a transaction that leaves work
# starts a worker, unless there is one or projector.autostart is off.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

# Workers do not poll (a long naptime), so every event must wake them.  The
# server's log reports each worker that is started.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
projector.naptime = 1h
projector.workers = 2
fsync = off
log_min_messages = debug1
max_prepared_transactions = 5
EOC
$node->start;

# The chain depends on the order and number of the events applied.
my $objects = $CHAIN . <<'EOS';
CREATE EXTENSION projector;
CREATE TABLE queued (tenant_id text, id text, events bigint, chain text, PRIMARY KEY (tenant_id, id));
CREATE TABLE followed (LIKE queued INCLUDING ALL);
CREATE FUNCTION apply_queued(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO queued AS m VALUES (e.tenant_id, e.aggregate_id, 1, md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET events = m.events + 1, chain = md5(m.chain || e.sequence_number) $$;
CREATE FUNCTION apply_followed(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO followed AS m VALUES (e.tenant_id, e.aggregate_id, 1, md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET events = m.events + 1, chain = md5(m.chain || e.sequence_number) $$;
CREATE VIEW oracle AS
SELECT tenant_id::text, aggregate_id::text AS id, count(*) AS events,
       chain(array_agg(sequence_number ORDER BY sequence_number)) AS chain
FROM projector.events GROUP BY 1, 2;
CREATE VIEW difference AS
    (TABLE queued EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE queued)
    UNION ALL (TABLE followed EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE followed);
CREATE VIEW workers AS
    SELECT * FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database();
EOS
my $create = <<'EOS';
SELECT projector_create('queued', handler => 'apply_queued', targets => '{queued}');
SELECT projector_create('followed', handler => 'apply_followed', targets => '{followed}', mode => 'follow');
EOS

sub append
{
	my ($n, $id) = @_;
	return "SELECT projector_append('t' || n % 3, '$id', 'E', '{}') FROM generate_series(1, $n) n";
}

sub is_exact
{
	my ($database, $name) = @_;
	ok($node->poll_query_until($database,
		'SELECT NOT EXISTS (SELECT FROM projector.apply_outbox)
			AND (SELECT coalesce(sum(events), 0) FROM followed) >= (SELECT count(*) FROM projector.events)'),
		"$name: nothing is left to do");
	is($node->safe_psql($database, 'TABLE difference'), '', "$name: the read models are what the log says");
	is($node->safe_psql($database, <<'EOS'), '', "$name: offsets are at the last event");
SELECT * FROM projector.projections CROSS JOIN (
    SELECT tenant_id, aggregate_id, max(sequence_number) AS last FROM projector.events GROUP BY 1, 2) e
LEFT JOIN projector.projection_offsets o USING (projection_id, tenant_id, aggregate_id)
WHERE o.last_sequence_number IS DISTINCT FROM e.last
EOS
	return;
}

sub workers
{
	return $node->safe_psql('postgres', 'SELECT count(*) FROM workers');
}

sub no_worker_is_left
{
	$node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM workers)') or die 'there are workers still';
	return;
}

# How many workers have been started since the log had that size?
sub started
{
	my ($log) = @_;
	my @starts = slurp_file($node->logfile, $log) =~ /starting background worker process "projector worker/g;
	return scalar @starts;
}

# ---- CREATE EXTENSION is enough ----

is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), '', 'nothing is preloaded');
$node->safe_psql('postgres', $objects);
$node->safe_psql('postgres', $create);
$node->safe_psql('postgres', append(9, 'a'));
is_exact('postgres', 'the first events');
is(workers(), '1', 'a worker is there');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'projector launcher'}), '0',
	'and no launcher');

# Each of these finds the worker gone, and starts one.
my %work = (
	'an append for one that queues' => [ q{SELECT projector_set_mode('followed', 'off')}, append(3, 'b'), q{SELECT projector_set_mode('followed', 'follow')} ],
	'an append for one that follows' => [ q{SELECT projector_set_mode('queued', 'off')}, append(3, 'b'), q{SELECT projector_set_mode('queued', 'async')} ],
	'a projection switched on' => [ q{SELECT projector_set_mode('queued', 'off'); } . append(3, 'b'), q{SELECT projector_set_mode('queued', 'async')}, '' ],
	'a pause that ends' => [ q{SELECT projector_pause('queued'); } . append(3, 'b'), q{SELECT projector_resume('queued')}, '' ],
);
foreach my $what (sort keys %work)
{
	my ($before, $command, $after) = @{ $work{$what} };
	$node->safe_psql('postgres', "SET projector.autostart = off; $before");
	$node->safe_psql('postgres', 'SELECT pg_terminate_backend(pid, 20000) FROM workers');
	no_worker_is_left();
	my $log = -s $node->logfile;
	$node->safe_psql('postgres', $command);
	$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM workers') or die 'no worker';
	is(started($log), 1, "$what starts a worker");
	$node->safe_psql('postgres', "SET projector.autostart = off; $after") if $after;
	is_exact('postgres', $what);
}

# PREPARE TRANSACTION starts the worker before the events are visible.  The session
# that commits them wakes it, if it has loaded the library.  (Otherwise the worker
# finds them after projector.naptime.)
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(pid, 20000) FROM workers');
no_worker_is_left();
$node->safe_psql('postgres', 'BEGIN; ' . append(3, 'c') . q{; PREPARE TRANSACTION 'p'});
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM workers'), 'a two-phase appender starts a worker');
$node->safe_psql('postgres', q{LOAD 'projector'; COMMIT PREPARED 'p'});
is_exact('postgres', 'a two-phase appender');

# ---- one is enough ----

# Many sessions at once, none of which finds a worker.
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(pid, 20000) FROM workers');
no_worker_is_left();
my $log = -s $node->logfile;
append_to_file($node->basedir . '/append.sql', <<'EOB');
\set t random(1, 5)
SELECT projector_append('t' || :t, 'c' || :client_id, 'E', '{}');
EOB
my ($out, $err) = ('', '');
IPC::Run::run([ 'pgbench', '-n', '-C', '-c', 8, '-t', 20, '-f', $node->basedir . '/append.sql',
		'-h', $node->host, '-p', $node->port, 'postgres' ], '<', \undef, '>', \$out, '2>', \$err);
is($err, '', 'many sessions: no error');
is_exact('postgres', 'many sessions');
is(started($log), 1, 'many sessions: one worker was started');

# ---- not wanted ----

$node->safe_psql('postgres', 'CREATE DATABASE quiet');
$log = -s $node->logfile;
{
	local $ENV{PGOPTIONS} = '-c projector.autostart=off';
	$node->safe_psql('quiet', $objects);
	$node->safe_psql('quiet', $create);
	$node->safe_psql('quiet', append(9, 'a'));
	is($node->safe_psql('quiet', 'SELECT projector_drain()'), '18', 'without autostart events wait for somebody');
	is($node->safe_psql('quiet', 'SELECT count(*) FROM workers'), '0', 'and no worker is there');
	is(started($log), 0, 'nor was there ever one');
	is_exact('quiet', 'without autostart');
}
$node->safe_psql('quiet', append(9, 'b'));
is_exact('quiet', 'with autostart');
is($node->safe_psql('quiet', 'SELECT count(*) FROM workers') . workers(), '11', 'each database has a worker of its own');

# ---- by hand ----

is($node->safe_psql('postgres', 'SELECT projector_worker_start()'), '2', 'another worker is started by hand');
is($node->safe_psql('postgres', 'SELECT projector_worker_start()'), '2', 'but no more than there may be');
$node->safe_psql('postgres', append(9, 'd'));
is_exact('postgres', 'two workers');
is($node->safe_psql('postgres', 'SELECT projector_worker_stop()'), '2', 'they are stopped by hand');
no_worker_is_left();
$node->safe_psql('postgres', append(9, 'd'));
is($node->safe_psql('postgres', 'SELECT projector_drain()'), '18', 'then appends start none');
is(workers(), '0', 'none at all');
is($node->safe_psql('postgres', 'SELECT projector_worker_start()'), '1', 'until one is started by hand');
$node->safe_psql('postgres', append(9, 'd'));
is_exact('postgres', 'started by hand');
is($node->safe_psql('quiet', 'SELECT count(*) FROM workers'), '1', 'other databases have not been touched');

# ---- after a restart ----

$node->safe_psql('postgres', 'SELECT projector_worker_stop()');
no_worker_is_left();
$node->safe_psql('postgres', append(9, 'e'));
$node->restart;
is(workers(), '0', 'after a restart there is no worker');
$node->safe_psql('postgres', append(1, 'e'));
is_exact('postgres', 'until there is work, which is done with all that was left');

ok(slurp_file($node->logfile) !~ /terminated by signal|PANIC|TRAP/, 'nothing has crashed');

$node->stop;
done_testing();
