# Everything at once: appenders of all kinds, drains and retries, while modes
# change, projections are paused and resumed, and handlers fail at times.
# Afterwards every read model equals the one recomputed from the log: no event is
# missed, applied twice or applied out of order.
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
fsync = off
max_connections = 60
max_prepared_transactions = 20
deadlock_timeout = 100ms
EOC
$node->start;

# "exact" counts and chains: applying an event twice, out of order or not at
# all would show.  "stamped" has checkpoints in its rows and can be reset.
$node->safe_psql('postgres', $CHAIN . <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE exact (tenant_id text, id text, events bigint, total numeric, chain text,
    PRIMARY KEY (tenant_id, id));
CREATE TABLE stamped (tenant_id text, id text, total numeric, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
CREATE TABLE weather (stormy boolean);
INSERT INTO weather VALUES (false);
CREATE FUNCTION apply_exact(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO exact AS x VALUES (e.tenant_id, e.aggregate_id, 1, (e.payload->>'n')::numeric,
        md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET events = x.events + 1, total = x.total + excluded.total,
        chain = md5(x.chain || e.sequence_number);
    IF e.payload ? 'fragile' AND (SELECT stormy FROM weather) THEN
        RAISE EXCEPTION 'not in this weather';
    END IF;
END $$;
CREATE FUNCTION apply_stamped(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stamped AS x VALUES (e.tenant_id, e.aggregate_id, (e.payload->>'n')::numeric,
        e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET total = x.total + excluded.total, last_event_id = excluded.last_event_id,
        last_event_version = excluded.last_event_version
    WHERE x.last_event_version < excluded.last_event_version;
END $$;
SELECT projector_create('exact', handler => 'apply_exact', targets => '{exact}', mode => 'inline',
    options => '{"retry_base": "20 ms", "retry_max": "50 ms", "max_attempts": 1000, "batch_size": 50}');
SELECT projector_create('stamped', handler => 'apply_stamped', targets => '{stamped}', mode => 'async',
    options => '{"checkpoint": "check", "idempotent": true, "batch_size": 50}');

CREATE TABLE odd (LIKE exact INCLUDING ALL);
CREATE FUNCTION apply_odd(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO odd AS x VALUES (e.tenant_id, e.aggregate_id, 1, (e.payload->>'n')::numeric,
        md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE
    SET events = x.events + 1, total = x.total + excluded.total,
        chain = md5(x.chain || e.sequence_number);
END $$;
SELECT projector_create('odd', handler => 'apply_odd', targets => '{odd}', event_types => '{Odd}', mode => 'inline');

-- a retry is refused while the projection is off
CREATE FUNCTION retry_some() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN projector_retry(projection_name, tenant_id, aggregate_id, sequence_number)
    FROM projector.outbox WHERE status = 'failed' ORDER BY random() LIMIT 1;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RETURN 'refused';
END $$;
CREATE VIEW oracle AS
SELECT tenant_id::text, aggregate_id::text AS id, count(*) AS events,
       sum((payload->>'n')::numeric) AS total,
       chain(array_agg(sequence_number ORDER BY sequence_number)) AS chain
FROM projector.events GROUP BY 1, 2;
CREATE VIEW odd_oracle AS
SELECT tenant_id::text, aggregate_id::text AS id, count(*) AS events,
       sum((payload->>'n')::numeric) AS total,
       chain(array_agg(sequence_number ORDER BY sequence_number)) AS chain
FROM projector.events WHERE event_type = 'Odd' GROUP BY 1, 2;
CREATE VIEW stamped_oracle AS
SELECT DISTINCT ON (e.tenant_id, e.aggregate_id) e.tenant_id::text, e.aggregate_id::text AS id,
       sum((payload->>'n')::numeric) OVER (PARTITION BY e.tenant_id, e.aggregate_id) AS total,
       event_id AS last_event_id, sequence_number AS last_event_version
FROM projector.events e ORDER BY e.tenant_id, e.aggregate_id, sequence_number DESC;
EOS

my $dir = $node->basedir;
my %scripts = (
	# one event; every tenth is fragile
	append => <<'EOB',
\set t random(1, 4)
\set a random(1, 12)
\set n random(1, 1000)
SELECT projector_append('t' || :t, 'a' || :a, CASE WHEN :n % 2 = 1 THEN 'Odd' ELSE 'Even' END,
    CASE WHEN :n % 10 = 0 THEN jsonb_build_object('n', :n, 'fragile', true) ELSE jsonb_build_object('n', :n) END);
EOB
	# several events of one aggregate, in a transaction that lasts
	batch => <<'EOB',
\set t random(1, 4)
\set a random(1, 12)
\set n random(1, 1000)
BEGIN;
SELECT projector_append_batch('t' || :t, 'a' || :a, jsonb_build_array(
    jsonb_build_object('event_type', 'Odd', 'payload', jsonb_build_object('n', :n)),
    jsonb_build_object('event_type', 'Even', 'payload', jsonb_build_object('n', -:n))));
SAVEPOINT s;
SELECT projector_append('t' || :t, 'a' || :a, 'Odd', jsonb_build_object('n', 10000000));
ROLLBACK TO s;
\sleep 5 ms
COMMIT;
EOB
	# above READ COMMITTED, and rolled back every other time
	serializable => <<'EOB',
\set t random(1, 4)
\set n random(1, 1000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_append('t' || :t, 's' || :client_id, 'Odd', jsonb_build_object('n', :n));
\if :n % 2 = 0
COMMIT;
\else
ROLLBACK;
\endif
EOB
	# a two-phase appender
	prepared => <<'EOB',
\set t random(1, 4)
\set n random(1, 1000)
BEGIN;
SELECT projector_append('t' || :t, 'p' || :client_id, 'Odd', jsonb_build_object('n', :n));
PREPARE TRANSACTION 'c:client_id';
\sleep 10 ms
COMMIT PREPARED 'c:client_id';
EOB
	drain => <<'EOB',
SET client_min_messages = warning;
SET projector.tail_wait = 20;
SELECT projector_drain();
\sleep 5 ms
EOB
	retry => <<'EOB',
SELECT retry_some();
\sleep 10 ms
EOB
	operator => <<'EOB',
\set n random(1, 9)
SELECT CASE :n
    WHEN 1 THEN projector_set_mode('exact', 'async')
    WHEN 2 THEN projector_set_mode('exact', 'off')
    WHEN 3 THEN projector_set_mode('exact', 'inline')
    WHEN 4 THEN projector_pause('exact')
    WHEN 5 THEN projector_resume('exact')
    WHEN 6 THEN projector_set_mode('odd', 'off', 't1')
    WHEN 7 THEN projector_set_mode('odd', NULL, 't1')
    WHEN 8 THEN projector_pause('odd', 't2')
    WHEN 9 THEN projector_resume('odd', 't2') END;
UPDATE weather SET stormy = random() < 0.3;
\sleep 40 ms
EOB
	reset => <<'EOB',
\set n random(1, 4)
SELECT CASE :n WHEN 1 THEN projector_reset('stamped')
    WHEN 2 THEN projector_reset('stamped', 't1')
    WHEN 3 THEN projector_reset('stamped', 't2', 'a3') END;
\sleep 80 ms
EOB
);
while (my ($name, $text) = each %scripts)
{
	append_to_file("$dir/$name.sql", $text);
}

# Create the aggregates that are reset by name.
$node->safe_psql('postgres', q{SELECT projector_append('t' || t, 'a3', 'Odd', '{"n": 1}') FROM generate_series(1, 2) t});

# Serialization failures and deadlocks are retried, as a client would.
my @retry = ('--max-tries=100');
my @run = (
	[ 'append', 4 ], [ 'batch', 2 ], [ 'serializable', 1 ],
	[ 'prepared', 2 ], [ 'drain', 2 ], [ 'retry', 1 ],
	[ 'operator', 1 ], [ 'reset', 1 ]);
my @handles;
foreach my $part (@run)
{
	my ($name, $clients) = @$part;
	my ($out, $err) = ('', '');
	my @cmd = (
		'pgbench', '-n', '-T', $ENV{CHAOS_SECONDS} || 8,
		'-c', $clients, '-f', "$dir/$name.sql", @retry,
		'-h', $node->host, '-p', $node->port, 'postgres');
	push @handles, { name => $name, out => \$out, err => \$err,
		run => IPC::Run::start(\@cmd, '<', \undef, '>', \$out, '2>', \$err) };
}
foreach my $handle (@handles)
{
	$handle->{run}->finish;
	my $err = ${ $handle->{err} };
	is($err, '', "$handle->{name}: no error");
	like(${ $handle->{out} }, qr/number of failed transactions: 0 /,
		"$handle->{name}: nothing given up");
}

# At the end: everything on, everything resumed.
$node->safe_psql('postgres', <<'EOS');
UPDATE weather SET stormy = false;
SELECT projector_set_mode('exact', 'async'), projector_resume('exact');
SELECT projector_set_mode('odd', NULL, 't1'), projector_resume('odd', 't2');
EOS
ok($node->poll_query_until('postgres', <<'EOS'), 'drains run dry');
SELECT projector_drain() = 0 AND NOT EXISTS (SELECT FROM projector.apply_outbox)
    AND NOT EXISTS (SELECT FROM projector.projection_cursors WHERE state <> 'live')
EOS

cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM projector.events'),
	'>', 500, 'there was something to do');
is($node->safe_psql('postgres', <<'EOS'), '', 'sequences have no gaps, and log_seq rises');
SELECT tenant_id, aggregate_id, sequence_number FROM (
    SELECT *, lag(log_seq) OVER w AS before, row_number() OVER w AS n FROM projector.events
    WINDOW w AS (PARTITION BY tenant_id, aggregate_id ORDER BY sequence_number)) e
WHERE sequence_number <> n OR log_seq <= before
EOS
foreach my $pair ([ 'exact', 'oracle' ], [ 'odd', 'odd_oracle' ], [ 'stamped', 'stamped_oracle' ])
{
	my ($live, $oracle) = @$pair;
	is($node->safe_psql('postgres',
			"(TABLE $live EXCEPT ALL TABLE $oracle) UNION ALL (TABLE $oracle EXCEPT ALL TABLE $live)"),
		'', "$live equals the read model recomputed from the log");
}
is($node->safe_psql('postgres', <<'EOS'), '', 'offsets are at the last subscribed event');
SELECT o.* FROM projector.offsets o
JOIN (SELECT tenant_id, aggregate_id, max(sequence_number) AS last,
             max(sequence_number) FILTER (WHERE event_type = 'Odd') AS last_odd
      FROM projector.events GROUP BY 1, 2) e USING (tenant_id, aggregate_id)
WHERE o.last_sequence_number <> CASE o.projection_name WHEN 'odd' THEN e.last_odd ELSE e.last END
EOS
is($node->safe_psql('postgres', 'SELECT count(*) FROM projector.failures WHERE resolved_at IS NULL'),
	'0', 'every failure has been resolved');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), '0', 'nothing is left prepared');

done_testing();
