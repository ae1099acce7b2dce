# pg_upgrade: the guard does not interfere, and the projections of the new
# cluster are adopted like those of a copy.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
$old->start;
$old->safe_psql('postgres', q{
CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SET client_min_messages = warning;
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}', mode => 'inline');
SELECT projector_append('acme', 'a', 'E', '{}')});
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
chdir ${PostgreSQL::Test::Utils::tmp_check};
command_ok([ 'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir,
	'-b', $old->config_data('--bindir'), '-B', $new->config_data('--bindir'), '-s', $new->host, '-p', $old->port, '-P', $new->port ],
	'pg_upgrade of a database with a live projection');
$new->start;

my ($out, $err) = ('', '');
$new->psql('postgres', 'SELECT projector_adopt()', stdout => \$out, stderr => \$err);
is($out, '1', 'the projection is adopted');
like($err, qr/NOTICE:  projection "stock" is adopted: owner \S+, targets public.stock/, 'and the choice is said');
is($new->safe_psql('postgres', q{SELECT projector_append('acme', 'a', 'E', '{}'); SELECT n FROM stock}), "2\n2", 'it runs');
$new->psql('postgres', 'DROP TABLE stock', stderr => \$err);
like($err, qr/cannot drop table public.stock because projection "stock" uses it/, 'and is guarded');
$new->stop;
done_testing();
