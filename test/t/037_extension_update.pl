# Updates of the extension: a database of the release before, with rows in every
# state, is served by the new library until ALTER EXTENSION UPDATE, becomes what a
# fresh one is, and continues by itself.  Versions that the library does not know
# are refused.
use strict;
use warnings;
use Digest::SHA;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use ReleaseData;
use Test::More;

my $previous = '0.9';

# ---- released files do not change ----

my %released = ('projector--0.9.sql' => '3167b629adf2692961bf6f9ac1217e7bb51c474d2cab2c78eec650a5bae0f916');
is_deeply([ sort map { s{.*/}{}r } glob('src/sql/released/*.sql') ], [ sort keys %released ], 'the released versions');
foreach my $file (sort keys %released)
{
	is(Digest::SHA->new(256)->addfile("src/sql/released/$file")->hexdigest, $released{$file}, "$file is what was released");
}

# ---- versions that do not exist ----

# They are installed for the time of this test: one from before the previous release,
# and one of the future.
my $extension = PostgreSQL::Test::Cluster->new('installation')->config_data('--sharedir') . '/extension';
my @installed;

sub install
{
	my ($name, $text) = @_;
	push @installed, "$extension/$name";
	append_to_file($installed[-1], $text);
	return;
}

END { local $? = $?; unlink @installed; }

install('projector--0.8.sql', slurp_file("src/sql/released/projector--$previous.sql"));
install('projector--0.8--0.9.sql', "ALTER TABLE projector.projections ADD COLUMN passing int;\nALTER TABLE projector.projections DROP COLUMN passing;\n");
install('projector--9.9.sql', slurp_file("src/sql/released/projector--$previous.sql"));
install('projector--1.0--9.9.sql', "SELECT projector.no_such_function();\n");

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = 1h
projector.workers = 2
projector.slice_events = 20
max_worker_processes = 20
fsync = off
EOC
$node->start;
use_node($node, 'old');
$node->safe_psql('postgres', "CREATE DATABASE $_") for qw(fresh old restored ancient later);

# What the catalogs say about the extension.
my $catalog = slurp_file('test/released/catalog.sql');

sub lines_of
{
	my ($database) = @_;
	return split /\n/, sql($catalog, $database);
}

# The lines that only one of two databases has.
sub differences
{
	my ($one, $other) = @_;
	my %count;
	$count{$_}++ for lines_of($one);
	$count{$_}-- for lines_of($other);
	return join("\n", map { ($count{$_} > 0 ? "only in $one: " : "only in $other: ") . $_ } sort grep { $count{$_} } keys %count);
}

sub log_count
{
	my ($pattern) = @_;
	return scalar(() = slurp_file($node->logfile) =~ /$pattern/g);
}

# ---- the previous version, served by this library ----

sql("CREATE EXTENSION projector VERSION '$previous'");
load_release($node, 'old', $previous);
settle_release('old');
my $events = sql('SELECT count(*) FROM projector.events');
my $items = sql('SELECT count(*) FROM projector.apply_outbox');
my $why = "the extension has version $previous, but the library has version 1.0: run ALTER EXTENSION projector UPDATE";

is(sql(q{SELECT projector_append('acme', 'new', 'Added', '{"amount": 1}')}), '1', 'projector_append');
is(sql(q{SELECT projector_append_batch('acme', 'new', '[{"event_type": "Added", "payload": {"amount": 2}}, {"event_type": "Added", "payload": {"amount": 3}}]')}),
	'3', 'projector_append_batch');
sql(q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('acme', 'new', 4, 'Added', '{"amount": 4}')});
sql(qq{COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;\nacme\tnew\t5\tAdded\t{"amount": 5}\n\\.\n});
is(sql('SELECT count(*) FROM projector.events'), $events + 5, 'all ways to append work');
is( sql(q{SELECT projection_name, count(*) FROM projector.outbox WHERE aggregate_id = 'new' GROUP BY 1 ORDER BY 1}),
	join("\n", map { "$_|5" } sort(qw(at_once built canary dead fresh in_place paused queued retried run_often skipping stopped switched totals tried))),
	'and the events are queued, those of mode inline too');
is(sql(q{SELECT count(*) FROM at_once WHERE id = 'new'}), '0', 'nothing is applied');
like(error_of(q{SELECT projector_append('acme', 's', 'Checked', '{"amount": 1}')}), qr/^55000: .*"strictly" cannot apply the event now.*\Q$why\E/s,
	'mode strict refuses what it cannot apply');
foreach my $call (q{projector_drain()}, q{projector_rebuild('queued')}, q{projector_create('more', statement => 'SELECT FROM batch')},
	q{projector_alter('queued', '{}')}, q{projector_set_mode('queued', 'off')}, q{projector_pause('queued')}, q{projector_verify('queued')},
	q{projector_start_run('queued')}, q{projector_requeue()}, q{projector_adopt()}, q{projector_prune()}, q{projector_wait('queued', 'acme', 'new', 1)})
{
	like(error_of("SELECT $call"), qr/^55000: extension "projector" has version 0\.9, but the library has version 1\.0\nDETAIL:.*HINT:  Run ALTER EXTENSION projector UPDATE/s,
		"$call is refused");
}
is(sql(q{SELECT DISTINCT state, why FROM projector.status_by_tenant WHERE projection_name = 'queued' AND tenant_id = 'acme'}), "blocked|cannot run: $why", 'the status says why');
is(sql(q{SELECT level, reason LIKE 'cannot_run%ALTER EXTENSION projector UPDATE' FROM projector_health()}), 'critical|t', 'so does projector_health');
like(error_of('DROP TABLE queued'), qr/cannot drop table public.queued because projection "queued" uses it/, 'targets are guarded');
ok($node->poll_query_until('old', q{SELECT count(*) = 2 FROM projector.worker_activity()}), 'there are workers');
is(log_count(qr/WARNING:  nothing is applied in database "old": \Q$why\E/), 1, 'the server log says why nothing is applied, once');
is(sql('SELECT count(*) FROM projector.apply_outbox'), $items + 5 * 15, 'the workers have applied nothing');
like(error_of('SELECT projector.begin_update()'), qr/function projector.begin_update\(\) does not exist/, 'what is new in this version is not there');

# ---- the update ----

# It waits for transactions that are appending.
my $psql = 'psql -XqAt -d "' . $node->connstr('old') . '"';
my ($ret, $out, $err) = $node->psql('old', qq{BEGIN;
SELECT projector_append('acme', 'open', 'Added', '{"amount": 1}');
\\! $psql -c "SET lock_timeout = '100ms'" -c "ALTER EXTENSION projector UPDATE" 2>&1
COMMIT;
SELECT extversion FROM pg_extension WHERE extname = 'projector';});
is($out, "1\nERROR:  canceling statement due to lock timeout\n0.9", 'the update waits for appends') or diag($err);

# It changes no data, but may add columns.  An open session notices it, and the
# workers do.
my @tables = qw(events projections projection_offsets projection_cursors projection_deltas projection_digests apply_outbox projection_failures
	projection_runs projection_run_slices);
my $contents = join(' UNION ALL ', map { "SELECT '$_' AS t, to_jsonb(x) AS r FROM projector.$_ x" } @tables);
my $lost = "SELECT 'lost', * FROM before b WHERE NOT EXISTS (SELECT FROM ($contents) c WHERE c.t = b.t AND c.r @> b.r)";
is(sql("SELECT string_agg(t, ' ') FROM (SELECT unnest('{@{[ join ',', @tables ]}}'::text[])) AS a (t) WHERE t NOT IN (SELECT t FROM ($contents) c)"), '', 'every table has rows');
like(sql(qq{SELECT projector_append('acme', 'session', 'Added', '{"amount": 1}');
\\! $psql -c "BEGIN" -c "CREATE TEMP TABLE before AS $contents" -c "ALTER EXTENSION projector UPDATE" -c "$lost" -c "COMMIT"
SELECT projector_pause('queued', 'acme', 'by the session');
SELECT projector_resume('queued', 'acme')}), qr/^1\n+$/, 'an open session and the update: no row is lost');
is(differences('old', 'old'), '', 'the catalogs can be compared');
sql('CREATE EXTENSION projector', 'fresh');
cmp_ok(scalar(lines_of('fresh')), '>', 1000, 'there is much to compare');
is(differences('old', 'fresh'), '', 'an updated database has the same objects as a fresh one');
unlike(join("\n", lines_of('fresh')), qr/NOT COMPARED/, 'of every kind');
comes_true(q{count(*) = 2 FROM at_once WHERE id IN ('new', 'session')}, 'the workers continue by themselves');
drains_to_the_oracle('old');
is(log_count(qr/nothing is applied in database "old"/), 1, 'nothing more is reported');

# ---- a dump of the previous version ----

load_release($node, 'restored', $previous);
is(sql(q{SELECT extversion FROM pg_extension WHERE extname = 'projector'}, 'restored'), '1.0', 'a dump is restored as this version');
is(differences('restored', 'fresh'), '', 'the same as a fresh one');
is(sql('SELECT projector_adopt()', 'restored'), sql('SELECT count(*) FROM projector.projections', 'restored'), 'its projections are adopted');
drains_to_the_oracle('restored');

# ---- versions that the library does not know ----

my $later = qr/^55000: version 9\.9 of extension "projector" needs a later library than version 1\.0\nHINT:  If projector 9\.9 is installed, restart the server/;
like(error_of(q{CREATE EXTENSION projector VERSION '9.9'}, 'later'), $later, 'a later version is not created');
like(error_of(q{ALTER EXTENSION projector UPDATE TO '9.9'}), $later, 'nor is there an update to it');

# Such as on a server whose package was replaced by an older one.
sql(q{CREATE EXTENSION projector; CREATE TABLE model (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
	SELECT projector_create('model', fold_columns => '{"n": "s.n + 1"}', targets => '{model}'); SELECT projector_append('acme', 'a', 'E', '{}')}, 'later');
comes_true('count(*) = 1 FROM model', 'a projection runs', 'later');
sql(q{UPDATE pg_extension SET extversion = '9.9' WHERE extname = 'projector'; UPDATE pg_namespace SET nspname = nspname WHERE nspname = 'projector'}, 'later');
my $unknown = qr/^55000: extension "projector" has version 9\.9, which the library of version 1\.0 does not serve\nHINT:  Install projector 9\.9 on this server and restart it/;
my @uses = (q{SELECT projector_append('acme', 'a', 'E', '{}')}, q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('acme', 'a', 2, 'E', '{}')},
	q{SELECT * FROM projector.status}, q{SELECT projector_drain()}, q{SELECT projector_drop('model')}, q{SELECT projector_adopt()});
like(error_of($_, 'later'), $unknown, "9.9: $_") for @uses;
ok($node->poll_query_until('later', q{SELECT count(*) = 0 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.backend_type = 'projector worker' AND a.datname = 'later' AND l.relation = 'projector.events'::regclass}),
	'its workers leave the tables alone');
is(error_of('DROP TABLE model; DROP EXTENSION projector CASCADE', 'later'), 'none', 'it can be dropped');

# Older than the previous release: refused too, but it can be updated.
sql(q{CREATE EXTENSION projector VERSION '0.8'}, 'ancient');
my $older = qr/^55000: extension "projector" has version 0\.8, which the library of version 1\.0 does not serve\nHINT:  Run ALTER EXTENSION projector UPDATE/;
like(error_of($_, 'ancient'), $older, "0.8: $_") for @uses;
like(error_of(qq{COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;\nacme\tnew\t1\tAdded\t{}\n\\.\n}, 'ancient'), $older, '0.8: COPY');
sql('ALTER EXTENSION projector UPDATE', 'ancient');
is(sql(q{SELECT projector_append('acme', 'a', 'E', '{}')}, 'ancient'), '1', 'updated through all versions');
is(sql(q{SELECT extversion FROM pg_extension WHERE extname = 'projector'}, 'ancient'), '1.0', 'to this one');
$node->stop;

# ---- without preloading ----

my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init;
$plain->append_conf('postgresql.conf', "projector.naptime = 1h\nfsync = off");
$plain->start;
use_node($plain);
sql("CREATE EXTENSION projector VERSION '$previous'");
load_release($plain, 'postgres', $previous);
settle_release('postgres');
sql(q{SELECT projector_append('acme', 'new', 'Added', '{"amount": 1}')});
comes_true(q{count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'projector worker'}, 'an append starts a worker, which waits for the update');
is(sql(q{SELECT count(*) FROM at_once WHERE id = 'new'}), '0', 'and applies nothing');
sql('ALTER EXTENSION projector UPDATE');
comes_true(q{count(*) = 1 FROM at_once WHERE id = 'new'}, 'until the extension is updated');
drains_to_the_oracle('postgres');
$plain->stop;

done_testing();
