# The order of the log.  log_seq is drawn when an event is inserted, but events
# become visible when transactions commit, in another order.  A log-ordered
# projection still receives each tenant's events in the order of log_seq.  So it
# waits for transactions that may still fill a gap, and for no others.
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
projector.naptime = 1h
projector.workers = 2
fsync = off
max_worker_processes = 16
max_prepared_transactions = 5
track_commit_timestamp = on
EOC
$node->start;
use_node($node);

# Each projection records what it receives, and a sequence records the order.
$node->safe_psql('postgres', <<'EOS');
CREATE EXTENSION projector;
CREATE SEQUENCE clock;
CREATE TABLE queued (n bigint DEFAULT nextval('clock'), tenant_id text, aggregate_id text, sequence_number bigint, log_seq bigint);
CREATE TABLE followed (LIKE queued INCLUDING DEFAULTS);
CREATE TABLE unordered (LIKE queued INCLUDING DEFAULTS);
CREATE FUNCTION apply_queued(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO queued (tenant_id, aggregate_id, sequence_number, log_seq)
    VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, e.log_seq) $$;
CREATE FUNCTION apply_followed(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO followed (tenant_id, aggregate_id, sequence_number, log_seq)
    VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, e.log_seq) $$;
CREATE FUNCTION apply_unordered(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO unordered (tenant_id, aggregate_id, sequence_number, log_seq)
    VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, e.log_seq) $$;
SELECT projector_create('queued', handler => 'apply_queued', targets => '{queued}', mode => 'async', ordering => 'log');
SELECT projector_create('followed', handler => 'apply_followed', targets => '{followed}', mode => 'follow', ordering => 'log',
    options => '{"batch_size": 7}');
SELECT projector_create('unordered', handler => 'apply_unordered', targets => '{unordered}', mode => 'async');

CREATE VIEW oracle AS
    SELECT tenant_id::text, aggregate_id::text, sequence_number, log_seq FROM projector.events;
EOS

sub caught_up
{
	my ($name) = @_;
	return ok($node->poll_query_until('postgres', <<'EOS'), "$name: all is applied");
SELECT NOT EXISTS (SELECT FROM projector.apply_outbox)
    AND (SELECT count(*) FROM followed) >= (SELECT count(*) FROM projector.events)
EOS
}

# Complete, and in the order of the log within each tenant.
sub in_order
{
	my ($name) = @_;
	caught_up($name);
	foreach my $table (qw(queued followed unordered))
	{
		my $columns = "SELECT tenant_id, aggregate_id, sequence_number, log_seq FROM $table";
		is(sql("($columns EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL $columns)"),
			'', "$name: $table: each event once");
	}
	foreach my $table (qw(queued followed))
	{
		is(sql(qq{SELECT * FROM (SELECT *, lag(log_seq) OVER (PARTITION BY tenant_id ORDER BY n) AS before FROM $table) x
			WHERE before >= log_seq}), '', "$name: $table: in the order of the log");
	}
	return;
}

# ---- many appenders ----

my $dir = $node->basedir;
append_to_file("$dir/append.sql", <<'EOB');
\set t random(1, 3)
\set a random(1, 40)
\set ms random(0, 50)
\set n random(1, 8)
BEGIN;
SELECT projector_append('t' || :t, 'a' || :a, 'E', '{}');
\sleep :ms ms
\if :n = 1
ROLLBACK;
\else
SELECT projector_append('t' || :t, 'c' || :client_id, 'E', '{}');
COMMIT;
\endif
EOB
my ($out, $err) = ('', '');
IPC::Run::run([ 'pgbench', '-n', '-c', 8, '-t', 60, '--max-tries=100', '-f', "$dir/append.sql",
		'-h', $node->host, '-p', $node->port, 'postgres' ], '<', \undef, '>', \$out, '2>', \$err);
is($err, '', 'eight appenders: no error');
cmp_ok(sql(<<'EOS'), '>', 50, 'many events were committed after ones behind them in the log');
SELECT count(*) FROM (
    SELECT pg_xact_commit_timestamp(xmin) AS at,
           min(pg_xact_commit_timestamp(xmin)) OVER (PARTITION BY tenant_id ORDER BY log_seq
               ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS earliest_behind
    FROM projector.events) e WHERE earliest_behind < at
EOS
in_order('eight appenders');

# ---- who is waited for ----

# One worker applies the projections in the order of their creation.  So when the
# last one has an event, the others could have had it too.
sql('ALTER SYSTEM SET projector.workers = 1');
$node->reload;
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'projector worker'})
  or die 'there is not one worker';

sub append
{
	my ($id) = @_;
	return "SELECT projector_append('t', '$id', 'E', '{}')";
}

sub waits_for_tail
{
	my ($name, $id) = @_;
	sql(append($id));
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM unordered WHERE aggregate_id = '$id'"),
		"$name: an event is applied at once where order does not matter");
	is(sql("SELECT count(*) FROM (TABLE queued UNION ALL TABLE followed) x WHERE aggregate_id = '$id'"), '0',
		"$name: and waits where it does");
	is(sql(q{SET projector.tail_wait = 0; SELECT projector_drain()}), '0', "$name: a drain waits too");
	is(sql("SELECT count(*), min(status) FROM projector.outbox WHERE aggregate_id = '$id'"), '1|pending',
		"$name: one can see that it waits");
	return;
}

# The locks of ANALYZE and VACUUM do not matter.
my $other = $node->background_psql('postgres');
$other->query_safe('BEGIN; LOCK TABLE projector.events IN SHARE UPDATE EXCLUSIVE MODE');
sql(append('analyzed'));
in_order('somebody analyzes the log');
$other->query_safe('COMMIT');

# Nor do those of readers.
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM projector.events; SELECT pg_current_xact_id()');
sql(append('read'));
in_order('somebody reads the log');
$other->query_safe('COMMIT');

foreach my $end ('COMMIT', 'ROLLBACK')
{
	$other->query_safe('BEGIN; ' . append("open, $end"));
	waits_for_tail("open appender, $end", "behind open, $end");
	$other->query_safe($end);
	in_order("open appender, $end");
}

# Positions are drawn in a subtransaction, which is rolled back: the rest of
# the transaction may still write.
$other->query_safe('BEGIN; SAVEPOINT s; ' . append('subtransaction') . '; ROLLBACK TO s; ' . append('subtransaction'));
waits_for_tail('open subtransaction', 'behind subtransaction');
$other->query_safe('COMMIT');
in_order('open subtransaction');
$other->quit;

foreach my $end ('COMMIT PREPARED', 'ROLLBACK PREPARED')
{
	sql('BEGIN; ' . append("prepared, $end") . q{; PREPARE TRANSACTION 'p'});
	waits_for_tail($end, "behind $end");
	sql("$end 'p'");
	in_order($end);
}

# Workers wait for a prepared transaction after a restart too.
sql('BEGIN; ' . append('prepared, restart') . q{; PREPARE TRANSACTION 'p'});
$node->restart;
waits_for_tail('prepared before a restart', 'behind restart');
sql(q{COMMIT PREPARED 'p'});
in_order('prepared before a restart');

# A tenant whose only events are in a prepared transaction, before and after
# workers have looked for new tenants.
sql('BEGIN; ' . append('first') =~ s/'t'/'u'/r . q{; PREPARE TRANSACTION 'p'});
sql(append('meanwhile'));
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM unordered WHERE aggregate_id = 'meanwhile'}),
	'another tenant\'s first event is prepared');
sql(q{COMMIT PREPARED 'p'});
in_order('another tenant\'s first event');
sql('BEGIN; ' . append('second') =~ s/'t'/'u'/r . q{; PREPARE TRANSACTION 'p'});
$node->restart;
$node->poll_query_until('postgres', q{SELECT state = 'idle' FROM pg_stat_activity WHERE backend_type = 'projector worker'})
  or die 'there is no idle worker';
sql(q{COMMIT PREPARED 'p'});
in_order('its second event, prepared before a restart');

# ---- in the end ----

is(sql(<<'EOS'), '', 'cursors are at the last event of each tenant, or behind it');
SELECT * FROM projector.projection_cursors JOIN projector.projections p USING (projection_id)
JOIN (SELECT tenant_id, max(log_seq) AS last FROM projector.events GROUP BY 1) e USING (tenant_id)
WHERE p.ordering = 'log' AND last_log_seq < last
EOS
is(sql(<<'EOS'), '', 'offsets are at the last event of each aggregate');
SELECT * FROM projector.projections CROSS JOIN (
    SELECT tenant_id, aggregate_id, max(sequence_number) AS last FROM projector.events GROUP BY 1, 2) e
LEFT JOIN projector.projection_offsets o USING (projection_id, tenant_id, aggregate_id)
WHERE o.last_sequence_number IS DISTINCT FROM e.last
EOS
is(sql('SELECT count(*) FROM projector.failures'), '0', 'nothing has failed');

$node->stop;
done_testing();
