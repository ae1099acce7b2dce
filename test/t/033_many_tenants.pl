# More tenants than a worker looks at in one go: none is missed, whether hints
# are lost, a projection is new, or a transaction of a worker is rolled back.
# Workers look only if they are woken, so that nothing is found by chance.
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
projector.workers = 2
fsync = off
EOC
$node->start;
use_node($node);

my $tenants = 1000;

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE FUNCTION add_projection(name text, mode text, ordering text DEFAULT 'aggregate') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid,
        last_event_version bigint, PRIMARY KEY (tenant_id, id))', name);
    RETURN projector_create(name, fold_columns => '{"n": "s.n + 1"}', targets => ARRAY[name], mode => mode,
        ordering => ordering);
END $$;
-- What the read model of a projection lacks, or has too much.
CREATE FUNCTION differences(name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT tenant_id, aggregate_id, count(*) AS n FROM projector.events GROUP BY 1, 2) e
        FULL JOIN %I r ON r.tenant_id = e.tenant_id AND r.id = e.aggregate_id WHERE r.n IS DISTINCT FROM e.n', name) INTO found;
    RETURN found;
END $$;
SELECT add_projection('queued', 'async');
SELECT add_projection('followed', 'follow');
SELECT add_projection('ordered', 'async', 'log');
SELECT add_projection('inlined', 'inline');
EOS
wait_until('bool_and(handover_log_seq IS NOT NULL) FROM projector.projections');

# Appends an event of each of so many tenants, in one transaction.
sub append_all
{
	my ($aggregate) = @_;
	sql(<<"EOS");
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 't' || lpad(i::text, 4, '0'), '$aggregate', 1, 'E', '{}' FROM generate_series(1, $tenants) i
EOS
	return;
}

sub is_complete
{
	my ($when, @names) = @_;
	comes_true("differences('$_') = 0", "$when: $_") foreach @names;
	return;
}

my @all = qw(queued followed ordered inlined);

append_all('first');
is_complete('more tenants in a transaction than can be told', @all);

append_all('second');
is_complete('again', @all);

sql(qq{SELECT projector_append('new$_', 'a', 'E', '{}')}) foreach 1 .. 20;
is_complete('new tenants, one by one', @all);

sql(q{SELECT projector_append(repeat('long', 250), 'a', 'E', '{}'), projector_append(repeat('other', 200), 'a', 'E', '{}')});
is_complete('names too long to be told', @all);


# A new projection: its cursors are made a part at a time.  The transaction that
# makes the first part is rolled back, and so are some later ones.
sql(<<'EOS');
CREATE SEQUENCE failures;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.aggregate_id = 'unlucky'
       AND NEW.projection_id = (SELECT projection_id FROM projector.projections WHERE name = 'queued')
       AND nextval('public.failures') <= 3 THEN
        RAISE EXCEPTION 'not an error of an event';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fail BEFORE INSERT ON projector.projection_offsets FOR EACH ROW EXECUTE FUNCTION fail();
BEGIN;
SELECT add_projection('late', 'async');
SELECT add_projection('late_followed', 'follow');
SELECT projector_append('t0001', 'unlucky', 'E', '{}');
COMMIT;
EOS
sql(qq{SELECT projector_append('newer$_', 'a', 'E', '{}')}) foreach 1 .. 20;
is_complete('a new projection', @all, qw(late late_followed));
is(sql('SELECT last_value >= 3 FROM failures'), 't', 'transactions were rolled back meanwhile');
is(sql("SELECT count(*) FROM projector.projection_cursors c JOIN projector.projections p USING (projection_id)
	WHERE p.name IN ('late', 'late_followed') AND c.state <> 'live'"), '0', 'all of its cursors have caught up');
sql('DROP TRIGGER fail ON projector.projection_offsets');

# Workers that are stopped, again and again, leave nothing half done.
sql(q{SELECT add_projection('interrupted', 'async')});
foreach my $i (1 .. 5)
{
	sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'projector worker'});
	sql(qq{SELECT projector_append('newest$i', 'a', 'E', '{}')});
}
is_complete('workers that were stopped', @all, 'interrupted');

# Many tenants with a failed event each: their retries come, and others go on.
sql(<<'EOS');
CREATE TABLE broken (tenant_id text, id text);
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'poison' AND NOT EXISTS (SELECT FROM broken WHERE id = 'mended') THEN
        RAISE EXCEPTION 'poison';
    END IF;
    INSERT INTO broken VALUES (e.tenant_id, e.aggregate_id);
END $$;
SELECT projector_create('handled', handler => 'handle', targets => '{broken}', event_types => '{P}',
    options => '{"retry_base": "100 ms", "retry_max": "100 ms", "max_attempts": 1000}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 't' || lpad(i::text, 4, '0'), 'poison', 1, 'P', '{"poison": 1}' FROM generate_series(1, 600) i;
EOS
comes_true("count(*) = 600 FROM projector.apply_outbox WHERE status = 'failed'", '600 tenants with a failed event');
sql(q{SELECT projector_append('zzz', 'good', 'P', '{}')});
comes_true("count(*) = 1 FROM broken", 'one without goes on meanwhile');
sql(q{INSERT INTO broken VALUES ('t', 'mended')});
comes_true("count(*) = 602 FROM broken", 'and all of them once the cause is repaired');

# Inline appends of many tenants are added up.
comes_true(<<'EOS', 'inline appends are added up');
(SELECT sum(applied_count) FROM projector.projection_cursors JOIN projector.projections USING (projection_id) WHERE name = 'inlined')
	= (SELECT count(*) FROM projector.events)
EOS

done_testing();
