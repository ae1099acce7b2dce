# Large transactions at default settings: many aggregates, many events, many
# tenants.

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
log_statement = none
fsync = off
});
$node->start;

$node->safe_psql('postgres', q{
	CREATE EXTENSION projector;
	CREATE TABLE balance (tenant_id text, aggregate_id text, events bigint,
		total bigint, version bigint, PRIMARY KEY (tenant_id, aggregate_id));
	CREATE FUNCTION apply_balance(e projector.event) RETURNS void
	LANGUAGE sql AS $$
		INSERT INTO balance AS b
		VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint, e.sequence_number)
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
		SET events = b.events + 1, total = b.total + excluded.total,
			version = excluded.version
	$$;
	CREATE VIEW oracle AS
		SELECT tenant_id::text, aggregate_id::text, count(*) AS events,
			sum(payload::bigint)::bigint AS total, max(sequence_number) AS version
		FROM projector.events GROUP BY 1, 2;
	CREATE VIEW differences AS
		(TABLE balance EXCEPT TABLE oracle) UNION ALL (TABLE oracle EXCEPT TABLE balance);
	SELECT projector_create('balance', handler => 'apply_balance',
		targets => '{balance}', mode => 'inline');
});

sub consistent
{
	my ($what) = @_;

	is($node->safe_psql('postgres', 'SELECT count(*) FROM differences'), '0',
		"$what: the read model equals the log");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM projector.apply_outbox'), '0',
		"$what: nothing waits");
	return;
}

# Run a command and return the backend's peak memory in megabytes, beyond what a
# small command of the same kind needs, without the shared memory it has touched.
sub peak_growth
{
	my ($small, $large) = @_;
	my $peak = q{SELECT (regexp_match(pg_read_file('/proc/' || pg_backend_pid() || '/status'), 'VmHWM:\s+(\d+)'))[1]::bigint / 1024
		- (regexp_match(pg_read_file('/proc/' || pg_backend_pid() || '/status'), 'RssShmem:\s+(\d+)'))[1]::bigint / 1024;};
	my @lines = split /\n/, $node->safe_psql('postgres', "$small; $peak $large; $peak");
	my @numbers = grep { /^\d+$/ } @lines;

	return $numbers[-1] - $numbers[0];
}

# One transaction appends to 100,000 aggregates, one statement each.
$node->safe_psql('postgres', q{
	DO $$
	BEGIN
		FOR n IN 1 .. 100000 LOOP
			PERFORM projector_append('t', 'a' || n, 'Added', '1');
		END LOOP;
	END $$});
is($node->safe_psql('postgres', q{SELECT count(*), count(DISTINCT aggregate_id) FROM projector.events}),
	'100000|100000', 'one transaction appends to 100,000 aggregates');
is($node->safe_psql('postgres', 'SELECT count(*) FROM balance'), '100000', 'all are applied inline');
consistent('many aggregates');

# One statement inserts 200,000 events.
my $insert = q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
	SELECT '%s', 'a' || (n / 10), n %% 10 + 1, 'Added', to_jsonb(n) FROM generate_series(0, %d) n};
my $growth = peak_growth(sprintf($insert, 's1', 999), sprintf($insert, 'b1', 199999));
cmp_ok($growth, '<', 60, 'one INSERT of 200,000 events, applied inline, stays within memory');
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.events WHERE tenant_id = 'b1'}), '200000', 'all are in the log');
consistent('one statement');

# The same queued, and drained in one call.
$node->safe_psql('postgres', q{SELECT projector_set_mode('balance', 'async')});
$growth = peak_growth(sprintf($insert, 's2', 999), sprintf($insert, 'b2', 199999));
cmp_ok($growth, '<', 60, 'queued: stays within memory');
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.apply_outbox WHERE tenant_id = 'b2'}), '200000', 'all are queued');
$growth = peak_growth(q{SELECT 'drained ' || projector_drain('balance', 's2')}, q{SELECT 'drained ' || projector_drain('balance', 'b2')});
cmp_ok($growth, '<', 60, 'a drain of 200,000 events stays within memory');
consistent('drained');

# A projection created now reads all of it from the log.
$node->safe_psql('postgres', q{
	CREATE TABLE twin (tenant_id text, aggregate_id text, events bigint, total bigint, version bigint,
		PRIMARY KEY (tenant_id, aggregate_id));
	CREATE FUNCTION apply_twin(e projector.event) RETURNS void LANGUAGE sql AS $$
		INSERT INTO twin AS b
		VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint, e.sequence_number)
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
		SET events = b.events + 1, total = b.total + excluded.total, version = excluded.version
	$$;
	SELECT projector_create('twin', handler => 'apply_twin', targets => '{twin}');
});
$node->safe_psql('postgres', q{SELECT projector_drain('twin')});
is($node->safe_psql('postgres', '(TABLE twin EXCEPT TABLE balance) UNION ALL (TABLE balance EXCEPT TABLE twin)'), '',
	'a projection created later reads the log to the same read model');
$node->safe_psql('postgres', q{SELECT projector_drop('twin')});

# 200 tenants in one statement: the first 64 are applied, the rest is queued.
$node->safe_psql('postgres', q{
	SELECT projector_set_mode('balance', 'inline');
	INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
	SELECT 'm' || n, 'a', 1, 'Added', '1' FROM generate_series(1, 200) n;
});
is($node->safe_psql('postgres', q{SELECT count(*) FROM projector.apply_outbox}), 200 - 64,
	'of 200 tenants in one statement 64 are applied, the rest is queued');
# A drain does at most 64 pairs a call.
my $calls = 0;
while ($node->safe_psql('postgres', 'SELECT projector_drain()') > 0)
{
	last if ++$calls > 10;
}
cmp_ok($calls, '<=', 3, 'three drains do the rest');
consistent('many tenants');

# One transaction, 200 tenants, strict: more than can be applied is an error.
$node->safe_psql('postgres', q{SELECT projector_set_mode('balance', 'strict')});
my ($ret, $out, $err) = $node->psql('postgres', q{
	INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
	SELECT 'm' || n, 'b', 1, 'Added', '1' FROM generate_series(1, 200) n}, extra_params => ['-v', 'VERBOSITY=sqlstate']);
like($err, qr/55000/, 'strict: a statement over 200 tenants is refused');
consistent('strict');

$node->stop;
done_testing();
