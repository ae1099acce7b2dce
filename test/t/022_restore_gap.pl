# A dump of a log from which an event was erased can be restored, and a warning
# says what is missing.  New events are still checked.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nshared_preload_libraries = 'projector'\nprojector.enabled = off\n");
$node->start;

# The log also has an id from before the length limit.
$node->safe_psql('postgres', <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE counts (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('counts', fold_columns => '{"n": "s.n+1"}', targets => '{counts}', mode => 'inline');
SELECT projector_append('acme', a, 'E', to_jsonb(n)) FROM unnest('{a,b}'::text[]) a, generate_series(1, 5) n;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
VALUES ('acme', repeat('x', 1500), 1, 'E', '{}', sha256('{}'));
SET session_replication_role = replica;
DELETE FROM projector.events WHERE aggregate_id = 'a' AND sequence_number IN (2, 3) OR aggregate_id = 'b' AND sequence_number = 1;
EOS
my $contents = q{SELECT log_seq, aggregate_id, sequence_number, payload, payload_hash FROM projector.events ORDER BY 1};
my $dump = $node->basedir . '/dump';
foreach my $jobs (1, 2)
{
	my $copy = "copy$jobs";
	$node->safe_psql('postgres', "CREATE DATABASE $copy");
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('postgres') ], 'dump');
	my ($stdout, $stderr);
	ok(IPC::Run::run([ 'pg_restore', '-e', '-j', $jobs, '-h', $node->host, '-p', $node->port, '-d', $copy, $dump ],
		'>', \$stdout, '2>', \$stderr), "restore with $jobs jobs") or diag $stderr;
	is($node->safe_psql($copy, $contents), $node->safe_psql('postgres', $contents), 'all is there that was dumped');
	is($node->safe_psql($copy, 'SELECT aggregate_id, first_sequence_number, last_sequence_number FROM projector.missing_events ORDER BY 1'),
		"a|2|3\nb|1|1", 'and what is missing is known');
	my ($rc, $out, $err) = $node->psql($copy, q{SELECT projector_append('acme', 'a', 'E', '{}')});
	is($out, 6, 'the log goes on');
	($rc, $out, $err) = $node->psql($copy, <<'EOS');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('acme', 'c', 2, 'E', '{}')
EOS
	like($err, qr/out of sequence/, 'a gap in what is new is refused');
	($rc, $out, $err) = $node->psql($copy, <<'EOS');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
VALUES ('acme', 'c', 2, 'E', '{}', sha256('{}')), ('acme', 'd', 2, 'E', '{}', NULL)
EOS
	like($err, qr/out of sequence/, 'also beside what is restored');
	($rc, $out, $err) = $node->psql($copy, <<'EOS');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
VALUES ('acme', 'c', 2, 'E', '{}', sha256('other'))
EOS
	like($err, qr/does not match the payload/, 'and so is a hash that is not the payload\'s');
}
my ($rc, $out, $err) = $node->psql('copy1', <<'EOS');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
VALUES ('acme', 'e', 2, 'E', '{}', sha256('{}'))
EOS
like($err, qr/events are missing from the restored log, in 1 place/, 'whoever restores a gap is told');
$node->stop('fast');
done_testing();
