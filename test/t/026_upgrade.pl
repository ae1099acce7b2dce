# pg_upgrade of a cluster with the previous version of the extension and its data in
# every state.  In the new cluster the extension is updated, the projections are
# adopted like those of a copy, and the backlog drains.
#
# OLD_INSTALL names the programs of the old cluster, of an earlier major version
# (harness/upgrade); without it both clusters are of the same.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use ReleaseData;
use Test::More;

my $previous = '0.9';
my ($old, $new, $name);
my $settings = <<'EOC';
shared_preload_libraries = 'projector'
projector.workers = 2
projector.slice_events = 20
fsync = off
EOC

# A cluster of the old version.  Checksums are the default since 18.
sub old_cluster
{
	my ($called) = @_;
	my $cluster = PostgreSQL::Test::Cluster->new($called, $ENV{OLD_INSTALL} ? (install_path => $ENV{OLD_INSTALL}) : ());
	$cluster->init(extra => ['-k']);
	return $cluster;
}

sub upgrade_command
{
	my ($from, $to) = @_;
	return [ 'pg_upgrade', '--no-sync', '-d', $from->data_dir, '-D', $to->data_dir,
		'-b', $ENV{OLD_INSTALL} ? "$ENV{OLD_INSTALL}/bin" : $from->config_data('--bindir'),
		'-B', $to->config_data('--bindir'), '-s', $to->host, '-p', $from->port, '-P', $to->port ];
}

# The lines that say why pg_upgrade has failed.  The files are removed with the cluster.
sub errors_in
{
	my ($cluster) = @_;
	my @logs = split /\n/, qx{find "${\ $cluster->data_dir}/pg_upgrade_output.d" -name '*.log'};
	return join("\n", map { grep { /\b(?:ERROR|FATAL|PANIC):|error:|^could not/ } split /\n/, slurp_file($_) } @logs);
}

# pg_upgrade has failed: does it fail without projector too?
sub explain_failure
{
	diag(errors_in($new));
	my $plain = old_cluster('plain_old');
	$plain->start;
	$plain->safe_psql('postgres', 'CREATE TABLE plain (id int)');
	$plain->stop;
	my $plain_new = PostgreSQL::Test::Cluster->new('plain_new');
	$plain_new->init(extra => ['-k']);
	die 'it works without projector' if run_log(upgrade_command($plain, $plain_new));
	diag("without projector, with one empty table, $name fails too:\n" . errors_in($plain_new));
	die 'it fails without projector too';
}

$old = old_cluster('old');
$old->append_conf('postgresql.conf', $settings);
$old->start;
use_node($old);
sql("CREATE EXTENSION projector VERSION '$previous'");
load_release($old, 'postgres', $previous);
settle_release('postgres');
sql('CREATE DATABASE current');
sql(q{CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SET client_min_messages = warning;
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}', mode => 'inline');
SELECT projector_append('acme', 'a', 'E', '{}')}, 'current');
my $tables = join(' UNION ALL ', map { "SELECT '$_', md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM projector.$_ x" }
	qw(events projections projection_offsets projection_cursors projection_deltas projection_digests apply_outbox projection_failures projection_runs
	projection_run_slices));
my $before = sql($tables);
$old->stop;

$new = PostgreSQL::Test::Cluster->new('new');
$new->init(extra => ['-k']);
$new->append_conf('postgresql.conf', $settings);

# It writes files into the current directory.
chdir $PostgreSQL::Test::Utils::tmp_check or die;
$name = 'pg_upgrade from ' . $old->config_data('--version') . ' to ' . $new->config_data('--version');
ok(run_log(upgrade_command($old, $new)), $name) or explain_failure();
$new->start;
use_node($new);

# The previous version, after pg_upgrade and before its update.
is(sql(q{SELECT extversion FROM pg_extension WHERE extname = 'projector'}), $previous, 'the version is the same');
is(sql($tables), $before, 'no row has changed');
is(sql(q{SELECT projector_append('acme', 'new', 'Added', '{"amount": 1}')}), '1', 'events can be appended');
sql('ALTER EXTENSION projector UPDATE');
is(sql(q{SELECT DISTINCT state FROM projector.status WHERE mode <> 'off'}), 'dormant', 'the projections are dormant');
is(sql('SELECT projector_adopt()'), sql('SELECT count(*) FROM projector.projections'), 'they are adopted');
drains_to_the_oracle('postgres');

# This version.
my ($out, $err) = ('', '');
$new->psql('current', 'SELECT projector_adopt()', stdout => \$out, stderr => \$err);
is($out, '1', 'the projection is adopted');
like($err, qr/NOTICE:  projection "stock" is adopted: owner \S+, targets public.stock/, 'and the choice is said');
is(sql(q{SELECT projector_append('acme', 'a', 'E', '{}'); SELECT n FROM stock}, 'current'), "2\n2", 'it runs');
$new->psql('current', 'DROP TABLE stock', stderr => \$err);
like($err, qr/cannot drop table public.stock because projection "stock" uses it/, 'and is guarded');
$new->stop;
done_testing();
