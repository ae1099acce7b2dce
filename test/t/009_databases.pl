# Workers and databases: each database with the extension has its own workers,
# which do not block DDL on it; a copy is dormant; a standby has no workers until
# it is promoted; and killing a worker loses nothing.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
fsync = off
restart_after_crash = on
max_worker_processes = 16
max_prepared_transactions = 5
EOC
$node->start;
use_node($node);

# The chain depends on the order and number of the events applied.  An event of
# type "Gate" waits while another session holds the lock.
my $objects = $CHAIN . <<'EOS';
CREATE EXTENSION projector;
CREATE TABLE model (tenant_id text, id text, events bigint, chain text, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION apply_model(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO model AS m VALUES (e.tenant_id, e.aggregate_id, 1, md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET events = m.events + 1, chain = md5(m.chain || e.sequence_number);
    IF e.event_type = 'Gate' THEN
        PERFORM pg_advisory_xact_lock_shared(1);
    END IF;
END $$;
CREATE VIEW oracle AS
SELECT tenant_id::text, aggregate_id::text AS id, count(*) AS events,
       chain(array_agg(sequence_number ORDER BY sequence_number)) AS chain
FROM projector.events GROUP BY 1, 2;
CREATE VIEW difference AS
    (TABLE model EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE model);
SELECT projector_create('model', handler => 'apply_model', targets => '{model}');
EOS

sub append
{
	my ($server, $database, $n, $type) = @_;
	$type ||= 'E';
	$server->safe_psql($database, "SELECT projector_append('t' || n % 2, 'a' || n % 3, '$type', '{}') FROM generate_series(1, $n) n");
	return;
}

sub workers_in
{
	my ($database) = @_;
	return "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = '$database')";
}

sub is_exact
{
	my ($server, $database, $name) = @_;
	ok($server->poll_query_until($database, 'SELECT NOT EXISTS (SELECT FROM projector.apply_outbox)'),
		"$name: nothing is left to do");
	is($server->safe_psql($database, 'TABLE difference'), '', "$name: the read model is what the log says");
	is($server->safe_psql($database, <<'EOS'), '', "$name: offsets are at the last event");
SELECT * FROM projector.projection_offsets o FULL JOIN (
    SELECT tenant_id, aggregate_id, max(sequence_number) AS last FROM projector.events GROUP BY 1, 2) e
    USING (tenant_id, aggregate_id) WHERE o.last_sequence_number IS DISTINCT FROM e.last
EOS
	return;
}

# ---- several databases ----

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(one two three);
foreach my $database (qw(one two))
{
	$node->safe_psql($database, $objects);
	comes_true(workers_in($database) . ' = 1', "database $database has a worker");
	append($node, $database, 20);
}
is_exact($node, $_, "database $_") foreach qw(one two);
comes_true(workers_in('three') . ' + ' . workers_in('postgres') . ' = 0', 'a database without the extension has none');

# The launcher has tried this database and found no extension; it would not try
# again for a minute.
$node->safe_psql('three', $objects);
append($node, 'three', 20);
is_exact($node, 'three', 'a new extension');
$node->safe_psql('three', q{SELECT projector_drop('model'); DROP EXTENSION projector CASCADE});
comes_true(workers_in('three') . ' = 0', 'DROP EXTENSION ends its worker');
$node->safe_psql('three', 'DROP TABLE model; DROP FUNCTION chain');
$node->safe_psql('three', $objects);
append($node, 'three', 20);
is_exact($node, 'three', 'the extension once more');

# ---- out of the way ----

comes_true(workers_in('one') . ' = 1', 'a worker idles in a database');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE one');
ok(1, 'which can be copied');
comes_true(workers_in('one') . ' = 1', 'the worker comes back');
append($node, 'one', 20);
is_exact($node, 'one', 'after a copy');

$node->safe_psql('postgres', 'ALTER DATABASE one RENAME TO uno');
ok(1, 'renamed');
comes_true(workers_in('uno') . ' = 1', 'the worker comes back');
append($node, 'uno', 20);
is_exact($node, 'uno', 'after a rename');

comes_true(workers_in('two') . ' = 1', 'a worker idles in another database');
$node->safe_psql('postgres', 'DROP DATABASE two');
ok(1, 'which can be dropped');
append($node, 'uno', 20);
is_exact($node, 'uno', 'after another database was dropped');

# ---- a copy ----

comes_true(workers_in('copy') . ' = 1', 'the copy has a worker');
append($node, 'copy', 20);
$node->safe_psql('copy', <<'EOS');
CREATE TABLE late (tenant_id text, log_seq bigint);
CREATE FUNCTION apply_late(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO late VALUES (e.tenant_id, e.log_seq) $$;
SELECT projector_create('late', handler => 'apply_late', targets => '{late}');
EOS
# its worker runs projections that were created in the copy …
ok($node->poll_query_until('copy', 'SELECT (SELECT count(*) FROM late) = (SELECT count(*) FROM projector.events)'),
	'a projection that was created in the copy is run');
# … and could have run the copied ones
is($node->safe_psql('copy', 'SELECT sum(events) FROM model'), '20', 'one that came along is dormant');
is($node->safe_psql('copy', 'SELECT projector_adopt()'), '1', 'until it is adopted');
ok($node->poll_query_until('copy', 'SELECT sum(events) = 40 FROM model'), 'then the log is read');
is($node->safe_psql('copy', 'TABLE difference'), '', 'and the read model is what it says');
is($node->safe_psql('copy', 'SELECT count(*) FROM projector.apply_outbox'), '0', 'nothing is left to do');

# ---- killed ----

# A prepared transaction keeps the gate closed.
$node->safe_psql('uno', q{BEGIN; SELECT pg_advisory_xact_lock(1); PREPARE TRANSACTION 'gate'});
append($node, 'uno', 30);
append($node, 'uno', 3, 'Gate');
append($node, 'uno', 30);
my $at_gate = q{SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND (classid, objid, objsubid) = (0, 1, 1)};
$node->poll_query_until('uno', "SELECT EXISTS ($at_gate)") or die 'nobody came to the gate';
my $pid = $node->safe_psql('uno', $at_gate);
my $log = -s $node->logfile;
is(kill('KILL', $pid), 1, 'a worker is killed in the middle of a batch');
$node->wait_for_log(qr/all server processes terminated; reinitializing/, $log);
$node->poll_query_until('uno', 'SELECT true') or die 'the server did not come back';
cmp_ok($node->safe_psql('uno', 'SELECT count(*) FROM projector.apply_outbox'), '>=', 3, 'its batch is still to be done');
$node->safe_psql('uno', q{ROLLBACK PREPARED 'gate'});
is_exact($node, 'uno', 'killed');
is($node->safe_psql('uno', 'SELECT count(*) FROM projector.failures'), '0', 'killed: no attempt was counted');
append($node, 'three', 20);
is_exact($node, 'three', 'another database');

# ---- a standby ----

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
# without workers, events queue
is($node->safe_psql('uno', 'SELECT projector_worker_stop()'), '1', 'the primary\'s worker is stopped');
comes_true(workers_in('uno') . ' = 0', 'and ends');
append($node, 'uno', 50);
$node->wait_for_catchup($standby);
is($standby->safe_psql('uno', 'SELECT count(*) FROM projector.apply_outbox'), '50', 'a standby has queued events');
is($standby->safe_psql('uno', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'projector%'}), '0',
	'but neither launcher nor worker');
my ($ret, $out, $err) = $standby->psql('uno', 'SELECT projector_worker_start()');
isnt($ret, 0, 'and none can be started');
$node->stop('fast');
$standby->promote;
is_exact($standby, 'uno', 'promoted');
append($standby, 'uno', 20);
is_exact($standby, 'uno', 'after promotion');
ok(slurp_file($standby->logfile) !~ /terminated by signal|PANIC|TRAP/, 'and nothing crashed');

$standby->stop;
done_testing();
