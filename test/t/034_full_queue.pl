# More pairs are due than a worker has room for: they keep no other projection
# waiting, and no tenant is forgotten.  Workers look only if they are woken, so
# that nothing is found by chance.
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
projector.naptime = '1h'
projector.workers = 1
fsync = off
EOC
$node->start;
use_node($node);

my $tenants = 6000;

# The handler of "large" takes a while, so that pairs are found faster than they
# are done.  After some, it waits until the test opens the gate.
sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE gate ();
CREATE TABLE large (tenant_id text, id text);
CREATE TABLE small (tenant_id text, large bigint);
CREATE FUNCTION handle_large(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.log_seq > 1500 THEN
        PERFORM FROM gate;
    ELSE
        PERFORM pg_sleep(0.001);
    END IF;
    INSERT INTO large VALUES (e.tenant_id, e.aggregate_id);
END $$;
CREATE FUNCTION handle_small(e projector.event) RETURNS void LANGUAGE sql AS
    'INSERT INTO small SELECT e.tenant_id, count(*) FROM large';
SELECT projector_create('large', handler => 'handle_large', targets => '{large}', event_types => '{L}', mode => 'async');
SELECT projector_create('small', handler => 'handle_small', targets => '{small}', event_types => '{S}', mode => 'async');
EOS
wait_until('bool_and(handover_log_seq IS NOT NULL) FROM projector.projections');

# Appends an event of each tenant in one transaction.
sub append_all
{
	my ($aggregate) = @_;
	sql(<<"EOS");
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 't' || lpad(i::text, 4, '0'), '$aggregate', 1, 'L', '{}' FROM generate_series(1, $tenants) i
EOS
	return;
}

my $gate = $node->background_psql('postgres');
$gate->query_safe('BEGIN; LOCK TABLE gate');
append_all('first');
wait_until('count(*) >= 1500 FROM large');
sql(q{SELECT projector_append('t0001', 'new', 'S', '{}')});
$gate->query_safe('COMMIT');
$gate->quit;
comes_true('count(*) = 1 FROM small', 'a new event of another projection');
cmp_ok(sql('SELECT large FROM small'), '<', 4500, 'is applied before most of the others');
comes_true("count(*) = $tenants FROM large", 'which follow');

# The same with two workers and projections that read the log.
sql(<<'EOS');
ALTER SYSTEM SET projector.workers = 2;
SELECT pg_reload_conf();
CREATE FUNCTION add_projection(name text, mode text, ordering text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid,
        last_event_version bigint, PRIMARY KEY (tenant_id, id))', name);
    RETURN projector_create(name, fold_columns => '{"n": "s.n + 1"}', targets => ARRAY[name], mode => mode,
        ordering => ordering);
END $$;
SELECT add_projection('queued', 'async', 'aggregate'), add_projection('followed', 'follow', 'aggregate'),
    add_projection('ordered', 'async', 'log');
EOS
wait_until('bool_and(handover_log_seq IS NOT NULL) FROM projector.projections');
append_all('second');
sql(qq{SELECT projector_append('t' || lpad(($_ * 17)::text, 4, '0'), 'a', 'E', '{}')}) foreach 1 .. 20;
foreach my $name (qw(queued followed ordered))
{
	comes_true(<<"EOS", "no tenant is forgotten: $name");
NOT EXISTS (SELECT FROM (SELECT tenant_id, aggregate_id, count(*) AS n FROM projector.events GROUP BY 1, 2) e
	FULL JOIN $name r ON r.tenant_id = e.tenant_id AND r.id = e.aggregate_id WHERE r.n IS DISTINCT FROM e.n)
EOS
}

done_testing();
