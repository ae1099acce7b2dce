# A backend is killed in the middle of a handler: after the restart the read
# model, the offsets, the outbox and the log agree, and a drain catches up.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'projector'
projector.enabled = off
restart_after_crash = on
max_prepared_transactions = 5
});
$node->start;

# The handler writes its row, then waits at the gate if the event is listed.
$node->safe_psql('postgres', q{
	CREATE EXTENSION projector;
	CREATE TABLE balance (tenant_id text, aggregate_id text, events bigint,
		total bigint, version bigint, PRIMARY KEY (tenant_id, aggregate_id));
	CREATE TABLE gate (aggregate_id text, sequence_number bigint);
	CREATE TABLE poison (aggregate_id text, sequence_number bigint);
	CREATE FUNCTION apply_balance(e projector.event) RETURNS void
	LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO balance AS b
		VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint, e.sequence_number)
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
		SET events = b.events + 1, total = b.total + excluded.total,
			version = excluded.version;
		IF EXISTS (SELECT FROM gate g WHERE (g.aggregate_id, g.sequence_number)
				= (e.aggregate_id, e.sequence_number)) THEN
			PERFORM pg_advisory_xact_lock_shared(1);
		END IF;
		IF EXISTS (SELECT FROM poison g WHERE (g.aggregate_id, g.sequence_number)
				= (e.aggregate_id, e.sequence_number)) THEN
			RAISE EXCEPTION 'poisoned';
		END IF;
	END $$;
	CREATE VIEW applied AS
		SELECT e.tenant_id::text, e.aggregate_id::text, count(*) AS events,
			sum(payload::bigint)::bigint AS total, max(sequence_number) AS version
		FROM projector.events e JOIN projector.offsets o
			ON (o.tenant_id, o.aggregate_id) = (e.tenant_id, e.aggregate_id)
			AND e.sequence_number <= o.last_sequence_number
		GROUP BY 1, 2;
	CREATE VIEW oracle AS
		SELECT tenant_id::text, aggregate_id::text, count(*) AS events,
			sum(payload::bigint)::bigint AS total, max(sequence_number) AS version
		FROM projector.events GROUP BY 1, 2;
	CREATE VIEW uncoupled AS
		SELECT e.tenant_id, e.aggregate_id, e.sequence_number
		FROM projector.events e
		LEFT JOIN projector.offsets o USING (tenant_id, aggregate_id)
		LEFT JOIN projector.apply_outbox q USING (log_seq)
		WHERE (e.sequence_number <= coalesce(o.last_sequence_number, 0)) = (q.log_seq IS NOT NULL);
	CREATE VIEW orphans AS
		SELECT log_seq FROM projector.apply_outbox EXCEPT SELECT log_seq FROM projector.events;
	SELECT projector_create('balance', handler => 'apply_balance',
		targets => '{balance}', mode => 'inline');
	SELECT projector_append('t', 'a', 'Added', '1');
	SELECT projector_drain();
});

# Run a command up to the gate, kill its backend there and wait until the
# server is up again.
sub crash_at_gate
{
	my ($command) = @_;
	my ($in, $out, $err) = ('', '', '');

	# a prepared transaction keeps the gate closed
	$node->safe_psql('postgres', q{
		BEGIN; SELECT pg_advisory_xact_lock(1); PREPARE TRANSACTION 'gate'});
	my $victim = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $command ],
		'<', \$in, '>', \$out, '2>', \$err);
	$node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND classid = 0 AND objid = 1})
	  or die 'nobody came to the gate';
	my $pid = $node->safe_psql('postgres', q{
		SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND classid = 0 AND objid = 1});
	my $log_end = -s $node->logfile;
	kill('KILL', $pid) == 1 or die "could not kill $pid";
	$victim->finish;
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $log_end);
	$node->poll_query_until('postgres', 'SELECT true')
	  or die 'the server did not come back';
	$node->safe_psql('postgres', q{ROLLBACK PREPARED 'gate'});
	return $err;
}

sub agree
{
	my ($what) = @_;

	is($node->safe_psql('postgres', '(TABLE balance EXCEPT TABLE applied) UNION ALL (TABLE applied EXCEPT TABLE balance)'),
		'', "$what: Atomic: the read model is what the offsets say");
	is($node->safe_psql('postgres', q{SELECT * FROM uncoupled}),
		'', "$what: Coupled: each event is applied or queued");
	is($node->safe_psql('postgres', q{SELECT * FROM orphans}),
		'', "$what: Coupled: nothing is queued that is not in the log");
	return;
}

sub catches_up
{
	my ($what) = @_;

	$node->safe_psql('postgres', q{DELETE FROM gate; DELETE FROM poison;
		SET projector.clock_offset = 36000; SELECT projector_drain()});
	is($node->safe_psql('postgres', '(TABLE balance EXCEPT TABLE oracle) UNION ALL (TABLE oracle EXCEPT TABLE balance)'),
		'', "$what: a drain brings the read model to the log");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM projector.apply_outbox'),
		'0', "$what: and empties the outbox");
	return;
}

# An inline append.
$node->safe_psql('postgres', q{INSERT INTO gate VALUES ('a', 2)});
like(crash_at_gate(q{SELECT projector_append('t', 'a', 'Added', '2')}),
	qr/server closed the connection/, 'an inline append is killed in its handler');
is($node->safe_psql('postgres', 'SELECT count(*) FROM projector.events'), '1', 'its event is not in the log');
agree('inline append');
catches_up('inline append');
is($node->safe_psql('postgres', q{SELECT projector_append('t', 'a', 'Added', '2')}), '2', 'its number is free');
agree('the next append');

# A transaction with several appends, one of them failed and recorded.
$node->safe_psql('postgres', q{INSERT INTO gate VALUES ('c', 1); INSERT INTO poison VALUES ('b', 1)});
crash_at_gate(q{BEGIN; SELECT projector_append('t', 'b', 'Added', '3'); SELECT projector_append('u', 'b', 'Added', '3'); SELECT projector_append('t', 'c', 'Added', '4'); COMMIT});
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.events WHERE aggregate_id IN ('b', 'c')}), '0', 'a transaction is killed: none of its events is there');
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.failures}), '0', 'nor a failure it had recorded');
agree('transaction');
catches_up('transaction');

# A drain, in the middle of a batch over two tenants.
$node->safe_psql('postgres', q{
	SELECT projector_set_mode('balance', 'async');
	INSERT INTO gate VALUES ('d7', 3);
	SELECT projector_append('t' || (n % 2), 'd' || n, 'Added', to_jsonb(n)) FROM generate_series(1, 10) n, generate_series(1, 5);
});
crash_at_gate('SELECT projector_drain()');
is($node->safe_psql('postgres', 'SELECT count(*) FROM projector.apply_outbox'), '50', 'a drain is killed: everything is still queued');
agree('drain');
catches_up('drain');

# The first reading of the log, and a retry.
$node->safe_psql('postgres', q{
	SELECT projector_set_mode('balance', 'off');
	INSERT INTO gate VALUES ('e', 3);
	SELECT projector_append('t0', 'e', 'Added', to_jsonb(n)) FROM generate_series(1, 5) n;
	SELECT projector_set_mode('balance', 'inline');
});
crash_at_gate('SELECT projector_drain()');
is($node->safe_psql('postgres', q{SELECT coalesce(max(last_sequence_number), 0) FROM projector.offsets WHERE aggregate_id = 'e'}), '0',
	'a drain that reads the log is killed: no offset has moved');
catches_up('reading the log');
$node->safe_psql('postgres', q{
	INSERT INTO poison VALUES ('f', 1);
	SELECT projector_append('t0', 'f', 'Added', '1'); SELECT projector_append('t0', 'f', 'Added', '1');
	DELETE FROM poison; INSERT INTO gate VALUES ('f', 1);
});
crash_at_gate(q{SELECT projector_retry('balance', 't0', 'f', 1)});
is($node->safe_psql('postgres', q{SELECT string_agg(status || ' ' || attempt_count, ', ' ORDER BY log_seq) FROM projector.outbox}), 'failed 1, held 0',
	'a retry is killed: the item is as it was');
agree('retry');
catches_up('retry');

# A prepared transaction survives, and holds back what must wait for it.
$node->safe_psql('postgres', q{
	SELECT projector_set_mode('balance', 'off');
	BEGIN; SELECT projector_append('t0', 'g', 'Added', '5'); PREPARE TRANSACTION 'appending';
});
$node->stop('immediate');
$node->start;
$node->safe_psql('postgres', q{SELECT projector_set_mode('balance', 'inline')});
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{SET projector.tail_wait = 0; SELECT projector_drain()});
like($stderr, qr/is not drained yet/, 'a prepared append holds back the handover, also after a restart');
$node->safe_psql('postgres', q{COMMIT PREPARED 'appending'});
catches_up('prepared transaction');
agree('prepared transaction');

$node->stop;
done_testing();
