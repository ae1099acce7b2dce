# A dump carries the log, the registry, the checkpoints and the work list along.
# Restored into another database, projections are dormant.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'projector'\nprojector.enabled = off");
$node->start;

$node->safe_psql('postgres', q{
	CREATE EXTENSION projector;
	CREATE TABLE balance (tenant_id text, aggregate_id text, events bigint,
		total bigint, PRIMARY KEY (tenant_id, aggregate_id));
	CREATE TABLE poison (aggregate_id text);
	INSERT INTO poison VALUES ('bad');
	CREATE FUNCTION apply_balance(e projector.event) RETURNS void
	LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO balance AS b VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint)
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
		SET events = b.events + 1, total = b.total + excluded.total;
		IF EXISTS (SELECT FROM poison p WHERE p.aggregate_id = e.aggregate_id) THEN
			RAISE EXCEPTION 'poisoned';
		END IF;
	END $$;
	SELECT projector_create('inline', handler => 'apply_balance', targets => '{balance}', mode => 'inline',
		event_types => '{Added,Taken}', options => '{"retry_base": "10 min", "idempotent": true}');
	SELECT projector_create('async', handler => 'apply_balance', event_types => '{Queued}');
	SELECT projector_create('gone', handler => 'apply_balance');
	SELECT projector_drop('gone');
	SELECT projector_append(t, a, 'Added', to_jsonb(n), metadata => '{"ü": "€"}')
	FROM unnest('{acme,"glo bex","émile"}'::text[]) t, unnest('{a,b,bad}'::text[]) a, generate_series(1, 3) n;
	SELECT projector_append('acme', 'q', 'Queued', to_jsonb(n)) FROM generate_series(1, 5) n;
	SELECT projector_pause('inline', 'glo bex', 'a reason');
	SELECT projector_set_mode('async', 'off', 'elsewhere');
	SELECT projector_append('glo bex', 'a', 'Added', '7');
	SELECT projector_drain(max_events => 2);
});

my @tables = qw(events projections projection_offsets projection_cursors apply_outbox projection_failures);
my $contents = join(' UNION ALL ', map {
	"SELECT '$_' AS t, to_jsonb(x)::text AS r FROM projector.$_ x" } @tables);
my $everything = "SELECT * FROM ($contents) a ORDER BY t COLLATE \"C\", r COLLATE \"C\"";
my $sequences = q{SELECT c.relname, last_value FROM pg_sequences s JOIN pg_class c ON c.relname = s.sequencename
	WHERE schemaname = 'projector' ORDER BY 1};
my $settings = q{SELECT unnest(extconfig)::regclass::text FROM pg_extension WHERE extname = 'projector' ORDER BY 1};
my $before = $node->safe_psql('postgres', $everything);
my $sequences_before = $node->safe_psql('postgres', $sequences);
cmp_ok(scalar(split /\n/, $node->safe_psql('postgres', "SELECT t, count(*) FROM ($contents) a GROUP BY 1")), '==', 6,
	'there is something in every table');

my $dump = $node->basedir . '/dump';
foreach my $format ('plain', 'custom', 'directory')
{
	my $copy = "copy_$format";

	$node->command_ok([ 'pg_dump', '-F', $format, '-f', "$dump.$format", 'postgres' ], "$format: dump");
	$node->safe_psql('postgres', "CREATE DATABASE $copy TEMPLATE template0");
	if ($format eq 'plain')
	{
		$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $copy, '-f', "$dump.$format" ], "$format: restore");
	}
	else
	{
		$node->command_ok([ 'pg_restore', '--exit-on-error', ($format eq 'directory' ? ('-j', 3) : ()), '-d', $copy, "$dump.$format" ],
			"$format: restore");
	}
	is($node->safe_psql($copy, $everything), $before, "$format: every row is as it was");
	is($node->safe_psql($copy, $sequences), $sequences_before, "$format: and every sequence");
	is($node->safe_psql($copy, 'SELECT * FROM balance ORDER BY 1, 2'), $node->safe_psql('postgres', 'SELECT * FROM balance ORDER BY 1, 2'),
		"$format: the read model has not been touched");

	# Dormant: the log is still written and checked, and that is all.
	my $other_tables = join(' UNION ALL ', map { "SELECT '$_' AS t, to_jsonb(x)::text AS r FROM projector.$_ x" } grep { $_ ne 'events' } @tables);
	my $others = "SELECT * FROM ($other_tables) a ORDER BY t COLLATE \"C\", r COLLATE \"C\"";
	my $others_before = $node->safe_psql($copy, $others);
	is($node->safe_psql($copy, q{SELECT projector_append('acme', 'a', 'Added', '100'), projector_append('new', 'a', 'Queued', '100')}), '4|1',
		"$format: an append in the copy writes the event");
	my $model = $node->safe_psql($copy, 'SELECT sum(events), sum(total) FROM balance');
	is($node->safe_psql($copy, $others), $others_before, "$format: and nothing else");
	is($node->safe_psql($copy, 'SELECT projector_drain()'), '0', "$format: a drain does nothing");
	is($node->safe_psql($copy, $others), $others_before, "$format: not even to a cursor");
	is($node->safe_psql($copy, 'SELECT sum(events), sum(total) FROM balance'), $model, "$format: nor to the read model");
	my ($ret, $out, $err) = $node->psql($copy, q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		VALUES ('acme', 'a', 9, 'Added', '1')}, extra_params => ['-v', 'VERBOSITY=sqlstate']);
	like($err, qr/PJ002/, "$format: the log is checked in the copy too");
	foreach my $command (q{projector_drain('inline')}, q{projector_retry('inline', 'acme', 'bad', 1)}, q{projector_reset('inline')})
	{
		($ret, $out, $err) = $node->psql($copy, "SELECT $command", extra_params => ['-v', 'VERBOSITY=sqlstate']);
		like($err, qr/55000/, "$format: $command is refused");
	}
}

# Adopted, a copy goes on from where it was made, and finds in the log what has
# been appended since.
foreach my $copy ('copy_plain', 'copy_directory')
{
	is($node->safe_psql($copy, 'SELECT projector_adopt()'), '2', "$copy: both projections are adopted");
	is($node->safe_psql($copy, 'SELECT projector_adopt()'), '0', "$copy: once");
	$node->safe_psql($copy, q{
		DELETE FROM poison;
		SELECT projector_resume('inline', 'glo bex');
		SET projector.clock_offset = 36000;
		SELECT projector_drain();
		SELECT projector_append('acme', 'a', 'Added', '1000');
		SELECT projector_drain();
	});
	is($node->safe_psql($copy, 'SELECT sum(events), sum(total) FROM balance'),
		$node->safe_psql($copy, 'SELECT count(*), sum(payload::bigint) FROM projector.events'),
		"$copy: the read model has come to the log, each event once");
	is($node->safe_psql($copy, 'SELECT count(*) FROM projector.apply_outbox'), '0', "$copy: nothing is left to do");
}

# At home everything goes on.
is($node->safe_psql('postgres', $everything), $before, 'the dump has changed nothing at home');
$node->safe_psql('postgres', q{
	DELETE FROM poison;
	SELECT projector_resume('inline', 'glo bex');
	SET projector.clock_offset = 36000;
	SELECT projector_drain();
});
is($node->safe_psql('postgres', 'SELECT sum(events), sum(total) FROM balance'),
	$node->safe_psql('postgres', 'SELECT count(*), sum(payload::bigint) FROM projector.events'),
	'at home a drain brings the read model to the log');

# Dumped twice: the copy of a copy.
$node->command_ok([ 'pg_dump', '-F', 'custom', '-f', "$dump.again", 'copy_custom' ], 'a dump of the copy');
$node->safe_psql('postgres', 'CREATE DATABASE again TEMPLATE template0');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'again', "$dump.again" ], 'can be restored');
is($node->safe_psql('again', $everything), $node->safe_psql('copy_custom', $everything), 'and is equal');

# CREATE DATABASE … TEMPLATE makes a copy too.
$node->safe_psql('template1', 'CREATE DATABASE twin TEMPLATE postgres');
$node->safe_psql('twin', q{SELECT projector_append('acme', 'a', 'Added', '100')});
is($node->safe_psql('twin', q{SELECT count(*) FROM projector.apply_outbox}), '0', 'a copied database is dormant too');
my ($ret, $out, $err) = $node->psql('twin', q{SELECT projector_set_mode('inline', 'async')}, extra_params => ['-v', 'VERBOSITY=sqlstate']);
like($err, qr/55000/, 'and its modes cannot be changed');
is($node->safe_psql('twin', q{SELECT count(*) FROM projector.projection_cursors WHERE tenant_id = 'acme' AND state <> 'live'}), '0',
	'its tenant had been live');
is($node->safe_psql('twin', q{SELECT projector_adopt()}), '2', 'until it is adopted');
$node->safe_psql('twin', q{SELECT projector_drain()});
is($node->safe_psql('twin', 'SELECT sum(events), sum(total) FROM balance'),
	$node->safe_psql('twin', 'SELECT count(*), sum(payload::bigint) FROM projector.events'),
	'then what was appended meanwhile is applied');

$node->stop;
done_testing();
