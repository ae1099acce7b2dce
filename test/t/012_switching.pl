# Modes change ten times a second while events are appended, by transactions that
# still use the old mode, that stay open, that are prepared or rolled back.
# In the end every event has been applied once, and in order.
#
# Environment: SWITCH_SECONDS, how long (8).
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $seconds = $ENV{SWITCH_SECONDS} || 8;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = 1h
projector.workers = 2
fsync = off
max_worker_processes = 16
max_connections = 60
max_prepared_transactions = 20
deadlock_timeout = 100ms
EOC
$node->start;

# "switched" changes for all tenants at once, "canary" for one of them only,
# "ordered" between the modes that keep the order of the log.
$node->safe_psql('postgres', $CHAIN . <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE switched (tenant_id text, id text, events bigint, total numeric, chain text,
    PRIMARY KEY (tenant_id, id));
CREATE TABLE canary (LIKE switched INCLUDING ALL);
CREATE TABLE ordered (tenant_id text PRIMARY KEY, events bigint, chain text);
CREATE FUNCTION apply_switched(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO switched AS x VALUES (e.tenant_id, e.aggregate_id, 1, (e.payload->>'n')::numeric,
        md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET events = x.events + 1, total = x.total + excluded.total,
        chain = md5(x.chain || e.sequence_number) $$;
CREATE FUNCTION apply_canary(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO canary AS x VALUES (e.tenant_id, e.aggregate_id, 1, (e.payload->>'n')::numeric,
        md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET events = x.events + 1, total = x.total + excluded.total,
        chain = md5(x.chain || e.sequence_number) $$;
CREATE FUNCTION apply_ordered(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO ordered AS x VALUES (e.tenant_id, 1, md5(e.log_seq::text))
    ON CONFLICT (tenant_id) DO UPDATE
    SET events = x.events + 1, chain = md5(x.chain || e.log_seq) $$;
SELECT projector_create('switched', handler => 'apply_switched', targets => '{switched}', options => '{"batch_size": 50}');
SELECT projector_create('canary', handler => 'apply_canary', targets => '{canary}', options => '{"batch_size": 50}');
SELECT projector_create('ordered', handler => 'apply_ordered', targets => '{ordered}', ordering => 'log',
    options => '{"batch_size": 50}');

CREATE VIEW oracle AS
SELECT tenant_id::text, aggregate_id::text AS id, count(*) AS events,
       sum((payload->>'n')::numeric) AS total,
       chain(array_agg(sequence_number ORDER BY sequence_number)) AS chain
FROM projector.events GROUP BY 1, 2;
CREATE VIEW ordered_oracle AS
SELECT tenant_id::text, count(*) AS events, chain(array_agg(log_seq ORDER BY log_seq)) AS chain
FROM projector.events GROUP BY 1;
EOS

my $dir = $node->basedir;
my %scripts = (
	append => <<'EOB',
\set t random(1, 4)
\set a random(1, 12)
\set n random(1, 1000)
\set ms random(0, 50)
BEGIN;
SELECT projector_append('t' || :t, 'a' || :a, 'E', jsonb_build_object('n', :n));
\sleep :ms ms
SELECT projector_append('t' || :t, 'c' || :client_id, 'E', jsonb_build_object('n', :n));
\if :n % 10 = 0
ROLLBACK;
\else
COMMIT;
\endif
EOB
	prepared => <<'EOB',
\set t random(1, 4)
\set n random(1, 1000)
\set ms random(0, 50)
BEGIN;
SELECT projector_append('t' || :t, 'p' || :client_id, 'E', jsonb_build_object('n', :n));
PREPARE TRANSACTION 'c:client_id';
\sleep :ms ms
COMMIT PREPARED 'c:client_id';
EOB
	switch => <<'EOB',
\set n random(1, 4)
\set m random(0, 4)
\set k random(1, 3)
SELECT projector_set_mode('switched', ('{async, follow, off, inline}'::text[])[:n]);
SELECT projector_set_mode('canary', ('{async, follow, off, inline}'::text[])[nullif(:m, 0)], 't1');
SELECT projector_set_mode('ordered', ('{async, follow, off}'::text[])[:k]);
\sleep 100 ms
EOB
);
while (my ($name, $text) = each %scripts)
{
	append_to_file("$dir/$name.sql", $text);
}

my @handles;
# a tenant without events is an error
local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
foreach my $part ([ 'append', 8 ], [ 'prepared', 1 ], [ 'switch', 1 ])
{
	my ($name, $clients) = @$part;
	my ($out, $err) = ('', '');
	my @cmd = (
		'pgbench', '-n', '-T', $seconds, '-c', $clients, '--max-tries=100',
		'-f', "$dir/$name.sql", '-h', $node->host, '-p', $node->port, 'postgres');
	push @handles, { name => $name, out => \$out, err => \$err,
		run => IPC::Run::start(\@cmd, '<', \undef, '>', \$out, '2>', \$err) };
}
foreach my $handle (@handles)
{
	$handle->{run}->finish;
	is(${ $handle->{err} }, '', "$handle->{name}: no error");
	like(${ $handle->{out} }, qr/number of failed transactions: 0 /, "$handle->{name}: nothing given up");
	my ($count) = ${ $handle->{out} } =~ /transactions actually processed: (\d+)/;
	cmp_ok($count, '>', $seconds, "$handle->{name}: there was something to do");
}

# Everything on again: workers catch up without a call.
$node->safe_psql('postgres', <<'EOS');
SELECT projector_set_mode('switched', 'async');
SELECT projector_set_mode('canary', NULL, 't1');
SELECT projector_set_mode('ordered', 'async');
EOS
ok($node->poll_query_until('postgres', <<'EOS'), 'all is applied');
SELECT NOT EXISTS (SELECT FROM projector.apply_outbox)
    AND NOT EXISTS (SELECT FROM projector.projections WHERE handover_log_seq IS NULL)
    AND NOT EXISTS (SELECT FROM projector.projection_cursors WHERE state <> 'live')
EOS

foreach my $pair ([ 'switched', 'oracle' ], [ 'canary', 'oracle' ], [ 'ordered', 'ordered_oracle' ])
{
	my ($live, $oracle) = @$pair;
	is($node->safe_psql('postgres',
			"(TABLE $live EXCEPT ALL TABLE $oracle) UNION ALL (TABLE $oracle EXCEPT ALL TABLE $live)"),
		'', "$live equals the read model recomputed from the log");
}
is($node->safe_psql('postgres', <<'EOS'), '', 'offsets are at the last event');
SELECT * FROM projector.projections CROSS JOIN (
    SELECT tenant_id, aggregate_id, max(sequence_number) AS last FROM projector.events GROUP BY 1, 2) e
LEFT JOIN projector.projection_offsets o USING (projection_id, tenant_id, aggregate_id)
WHERE o.last_sequence_number IS DISTINCT FROM e.last
EOS
is($node->safe_psql('postgres', 'SELECT count(*) FROM projector.failures'), '0', 'nothing has failed');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), '0', 'nothing is left prepared');
ok(slurp_file($node->logfile) !~ /terminated by signal|PANIC|TRAP/, 'nothing has crashed');

$node->stop;
done_testing();
