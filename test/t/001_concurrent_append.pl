# Fifty sessions append at once: numbers have no gaps, there are no deadlocks, an
# expected version has one winner, and the read model equals the log.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'projector'
projector.enabled = off
max_connections = 80
fsync = off
});
$node->start;

$node->safe_psql('postgres', q{
	CREATE EXTENSION projector;
	CREATE TABLE balance (tenant_id text, aggregate_id text, events bigint,
		total bigint, version bigint, PRIMARY KEY (tenant_id, aggregate_id));
	CREATE FUNCTION apply_balance(e projector.event) RETURNS void
	LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO balance AS b
		VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint, e.sequence_number)
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
		SET events = b.events + 1, total = b.total + excluded.total,
			version = excluded.version
		WHERE b.version = excluded.version - 1;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'event % out of order', e.sequence_number;
		END IF;
	END $$;
	CREATE VIEW oracle AS
		SELECT tenant_id::text, aggregate_id::text, count(*) AS events,
			sum(payload::bigint)::bigint AS total, max(sequence_number) AS version
		FROM projector.events GROUP BY 1, 2;
	CREATE VIEW differences AS
		(TABLE balance EXCEPT TABLE oracle) UNION ALL (TABLE oracle EXCEPT TABLE balance);
	CREATE VIEW disorder AS
		SELECT * FROM (
			SELECT tenant_id, aggregate_id, sequence_number,
				row_number() OVER w AS expected,
				log_seq > coalesce(lag(log_seq) OVER w, 0) AS rises
			FROM projector.events
			WINDOW w AS (PARTITION BY tenant_id, aggregate_id ORDER BY sequence_number)) n
		WHERE sequence_number <> expected OR NOT rises;
	SELECT projector_create('balance', handler => 'apply_balance',
		targets => '{balance}', mode => 'inline');
});

# Run a script in many sessions at once; every transaction must succeed.
sub hammer
{
	my ($clients, $transactions, $what, $script, @options) = @_;
	my $file = $node->basedir . '/script.sql';

	open(my $fh, '>', $file) or die $!;
	print $fh $script;
	close($fh);
	$node->command_checks_all(
		[ 'pgbench', '-n', '-c', $clients, '-j', 2, '-t', $transactions,
			@options, '-f', $file, 'postgres' ],
		0,
		[qr{number of transactions actually processed: ${\($clients * $transactions)}/${\($clients * $transactions)}\b}],
		[qr/^(?!.*ERROR)/s],
		$what);
	return;
}

sub consistent
{
	my ($what) = @_;

	is($node->safe_psql('postgres', 'SELECT * FROM disorder'), '',
		"$what: sequences have no gaps and log_seq rises with them");
	is($node->safe_psql('postgres', 'SELECT * FROM differences'), '',
		"$what: the read model equals the log");
	is($node->safe_psql('postgres',
			q{SELECT count(*) FROM oracle LEFT JOIN projector.offsets USING (tenant_id, aggregate_id)
			  WHERE last_sequence_number IS DISTINCT FROM version}),
		'0', "$what: the offsets are at the last events");
	is($node->safe_psql('postgres',
			'SELECT (SELECT count(*) FROM projector.apply_outbox), (SELECT count(*) FROM projector.projection_failures)'),
		'0|0', "$what: nothing waits, nothing failed");
	return;
}

# One aggregate, no expected version.
hammer(50, 20, 'fifty appenders to one aggregate all succeed',
	"SELECT projector_append('t', 'one', 'Added', '1');\n");
is($node->safe_psql('postgres', q{SELECT count(*), max(sequence_number) FROM projector.events WHERE aggregate_id = 'one'}),
	'1000|1000', 'a thousand events, numbered 1 to 1000');
consistent('one aggregate');

# The same in transactions that append twice, to one aggregate each time.
hammer(50, 5, 'fifty transactions that append twice each',
	"BEGIN;\nSELECT projector_append('t', 'twice', 'Added', '1');\nSELECT projector_append('t', 'twice', 'Added', '2');\nCOMMIT;\n");
consistent('two appends in a transaction');

# While the log's indexes are replaced there are two of each.
my $file = $node->basedir . '/reindexed.sql';
append_to_file($file, "\\set a random(1, 3)\nSELECT projector_append('t', 'reindexed' || :a, 'Added', '1');\n");
my ($out, $err) = ('', '');
my $appends = IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 1000, '-f', $file, $node->connstr('postgres') ], '<', \undef, '>', \$out, '2>', \$err);
my $reindexed = 0;
while ($appends->pumpable)
{
	$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY projector.events');
	$reindexed++;
	$appends->pump_nb;
}
$appends->finish;
unlike($err, qr/ERROR/, "eight appenders all succeed while indexes are replaced");
like($out, qr{actually processed: 8000/8000}, 'every append');
cmp_ok($reindexed, '>', 3, 'again and again');
consistent('indexes replaced');

# With an expected version: all want the same one, and one gets it.
$node->safe_psql('postgres', q{
	CREATE TABLE attempts (version bigint, won boolean);
	CREATE FUNCTION attempt() RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		v bigint;
	BEGIN
		SELECT coalesce(max(sequence_number), 0) INTO v FROM projector.events
		WHERE tenant_id = 't' AND aggregate_id = 'contested';
		BEGIN
			PERFORM projector_append('t', 'contested', 'Added', '1', expected_version => v);
			INSERT INTO attempts VALUES (v, true);
		EXCEPTION WHEN SQLSTATE 'PJ001' THEN
			INSERT INTO attempts VALUES (v, false);
		END;
	END $$;
});
hammer(50, 10, 'fifty sessions compete for each version', "SELECT attempt();\n");
is($node->safe_psql('postgres', 'SELECT count(*) FROM attempts'), '500',
	'an attempt wins or fails with PJ001, nothing else');
is($node->safe_psql('postgres', q{SELECT count(*) FROM (SELECT version FROM attempts WHERE won GROUP BY 1 HAVING count(*) <> 1) x}),
	'0', 'no version has two winners');
is($node->safe_psql('postgres', q{SELECT count(*) FROM attempts WHERE won}),
	$node->safe_psql('postgres', q{SELECT count(*) FROM projector.events WHERE aggregate_id = 'contested'}),
	'as many events as winners');
is($node->safe_psql('postgres', q{SELECT count(*) FROM (
		SELECT DISTINCT version FROM attempts EXCEPT SELECT version FROM attempts WHERE won) x}),
	'0', 'a version that was fought for has a winner');
consistent('expected version');

# The same event sent by all of them is one event.
hammer(50, 2, 'fifty sessions send the same event',
	"SELECT projector_append('t', 'repeated', 'Added', '1', event_id => '00000000-0000-0000-0000-000000000001');\n");
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.events WHERE aggregate_id = 'repeated'}),
	'1', 'it is in the log once');
consistent('the same event');

# Aggregates, tenants, single events and batches mixed.
hammer(50, 20, 'aggregates, tenants and batches mixed', q{
\set tenant random(1, 3)
\set a random(1, 5)
\set b random(1, 5)
SELECT projector_append('t' || :tenant, 'a' || :a, 'Added', '1');
SELECT projector_append_batch('t' || :tenant, 'a' || :b, '[{"event_type": "Added", "payload": 2}, {"event_type": "Added", "payload": 3}, {"event_type": "Added", "payload": 4}]');
});
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.events WHERE tenant_id IN ('t1', 't2', 't3')}),
	4 * 50 * 20, 'every event is in the log');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM projector.events e
		WHERE tenant_id <> 't' AND payload = '2' AND NOT EXISTS (
			SELECT FROM projector.events f JOIN projector.events g USING (tenant_id, aggregate_id)
			WHERE (f.tenant_id, f.aggregate_id) = (e.tenant_id, e.aggregate_id)
			  AND f.sequence_number = e.sequence_number + 1 AND f.payload = '3'
			  AND g.sequence_number = e.sequence_number + 2 AND g.payload = '4')}),
	'0', 'no batch was interleaved with another append');
consistent('mixed');

# While other sessions drain, pause and resume.
$node->safe_psql('postgres', q{
	CREATE FUNCTION disturb(what int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		IF what = 1 THEN PERFORM projector_pause('balance');
		ELSIF what = 2 THEN PERFORM projector_resume('balance');
		ELSE PERFORM projector_drain();
		END IF;
	END $$;
});
hammer(20, 50, 'appends, drains, pauses and resumes mixed', q{
\set a random(1, 4)
\set what random(1, 40)
SELECT projector_append('d', 'a' || :a, 'Added', '1');
\if :what <= 5
SELECT disturb(:what);
\endif
});
$node->safe_psql('postgres', q{SELECT projector_resume('balance'); SELECT projector_drain()});
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.events WHERE tenant_id = 'd'}),
	20 * 50, 'every event is in the log');
consistent('with drains and pauses');

ok(slurp_file($node->logfile) !~ /deadlock detected/, 'no deadlock');

$node->stop;
done_testing();
