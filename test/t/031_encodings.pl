# The encoding of a database does not matter: the extension can be created,
# non-ASCII text is stored, applied, rebuilt and verified, and error messages
# are as readable as in UTF8.
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
projector.workers = 1
max_worker_processes = 16
fsync = off
EOC
$node->start;
use_node($node);

# For each database: its encoding, the client encoding, and words that both can
# represent, in UTF-8.  A database in SQL_ASCII stores bytes unchanged.
my %database = (
	utf8   => { encoding => 'UTF8',      client => 'UTF8',      words => [ "Z\xc3\xbcrich", "\xe5\x9c\xa8\xe5\xba\xab" ] },
	latin1 => { encoding => 'LATIN1',    client => 'UTF8',      words => [ "Z\xc3\xbcrich", "caf\xc3\xa9" ] },
	euc_jp => { encoding => 'EUC_JP',    client => 'UTF8',      words => [ "\xe5\x9c\xa8\xe5\xba\xab", "\xe5\x93\x81" ] },
	ascii  => { encoding => 'SQL_ASCII', client => 'SQL_ASCII', words => [ "Z\xc3\xbcrich", "caf\xc3\xa9" ] },);

my %hash;
foreach my $name (sort keys %database)
{
	my ($encoding, $client, $words) = @{ $database{$name} }{qw(encoding client words)};
	my ($tenant, $word) = @$words;
	$node->safe_psql('postgres', "CREATE DATABASE $name ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
	local $ENV{PGCLIENTENCODING} = $client;
	use_node($node, $name);

	my ($rc, undef, $err) = $node->psql($name, 'CREATE EXTENSION projector');
	is($rc, 0, "$encoding: the extension is created") or diag($err);

	# A fold by expressions, a handler and a statement, whose names, filters and
	# keys are words too.
	sql(<<"EOS");
CREATE TABLE folded (tenant_id text, id text, n int NOT NULL DEFAULT 0, seen text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE handled (tenant_id text, seen text);
CREATE TABLE counted (tenant_id text, seen text, n bigint, PRIMARY KEY (tenant_id, seen));
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS
    'INSERT INTO handled VALUES (e.tenant_id, e.event_type || e.aggregate_id || (e.payload->>''$word''))';
SELECT projector_create('$word', targets => '{folded}', mode => 'inline',
    fold_columns => '{"n": "s.n + 1", "seen": "s.seen || (e.payload->>''$word'')"}', event_types => '{$word,E}');
SELECT projector_create('handled', handler => 'handle', targets => '{handled}');
SELECT projector_create('counted', targets => '{counted}', statement => 'INSERT INTO counted AS c
    SELECT tenant_id, payload->>''$word'', count(*) FROM batch GROUP BY 1, 2
    ON CONFLICT (tenant_id, seen) DO UPDATE SET n = c.n + excluded.n');
EOS
	is(sql("SELECT projector_append('$tenant', '$word', '$word', '{\"$word\": \"$tenant\"}', metadata => '{\"$word\": 1}')"),
		1, "$encoding: an event that is not ASCII is appended");
	sql("INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('$tenant', '$word', 2, 'E', '{\"$word\": \"$word\"}')");
	is(sql("SELECT projector_wait('$_', '$tenant', '$word', 2, '60 s')"), 'applied', "$encoding: applied by \"$_\"")
	  foreach $word, 'handled', 'counted';
	is(sql('SELECT tenant_id, id, n, seen FROM folded'), "$tenant|$word|2|$tenant$word", "$encoding: a fold has the words");
	is(sql('SELECT seen FROM handled ORDER BY 1'), join("\n", sort { $a cmp $b } "$word$word$tenant", "E$word$word"),
		"$encoding: a handler has them");
	is(sql("SELECT count(*), sum(n) FROM counted WHERE seen IN ('$tenant', '$word')"), '2|2', "$encoding: a statement has them");
	is(sql("SELECT projector_rebuild('$_', '$tenant')"), '2', "$encoding: \"$_\" is rebuilt") foreach $word, 'handled', 'counted';
	is(sql("SELECT matches FROM projector_verify('$_')"), 't', "$encoding: \"$_\" is verified") foreach $word, 'handled', 'counted';
	$hash{$name} = sql("SELECT encode(payload_hash, 'hex') FROM projector.events WHERE sequence_number = 1");

	# Errors are recorded and reported in readable text.
	sql("SELECT projector_append('$tenant', 'bad', 'E', '{\"$word\": null}')");
	is(sql("SELECT error_code, tenant_id FROM projector.failures WHERE projection_name = '$word'"), "23502|$tenant",
		"$encoding: a failure is recorded");
	foreach my $command ("projector_create('x', targets => '{folded}')",
		"projector_create('x', statement => 'SELECT 1 FROM batch')",
		"projector_create('x', statement => 'INSERT INTO counted SELECT tenant_id FROM elsewhere', targets => '{counted}')",
		"projector_create('x', handler => 'nowhere')",
		"projector_create('x', fold => 'handle', targets => '{folded}')",
		"projector_alter('handled', '{\"option\": 1}')",
		"projector_append('$tenant', '$word', '$word', '{}', expected_version => 7)")
	{
		my $said = error_of("SELECT $command");
		$said =~ s/\Q$_\E/word/g foreach $tenant, $word;
		like($said, qr/\A[0-9A-Z]{5}: [\x00-\x7f]*\z/, "$encoding: the error of $command is plain")
		  unless $said eq 'none' && fail("$encoding: $command is refused");
	}
}

# The hash of a payload is that of its text in UTF-8, in every database encoding:
# a log can move from one database to another.
is($hash{latin1}, sql(q{SELECT encode(sha256(convert_to('{"café": "Zürich"}', 'UTF8')), 'hex')}, 'utf8'),
	'a hash in LATIN1 is that of the text in UTF8');
is($hash{ascii}, $hash{latin1}, 'and so it is in SQL_ASCII');

# Bytes that are not valid characters cannot be in an event: its hash would mean
# nothing elsewhere.
use_node($node, 'ascii');
{
	local $ENV{PGCLIENTENCODING} = 'SQL_ASCII';
	like(error_of("SELECT projector_append('t', 'a', 'E', '\"\xff\"')"), qr/^22021/, 'SQL_ASCII: bytes that are no UTF-8 are refused');
	is(sql("SELECT count(*) FROM projector.events WHERE tenant_id = 't'"), '0', 'SQL_ASCII: and nothing is appended');
}

$node->stop;
done_testing();
