# Owns what the TAP files share: the server and database to query, and functions
# to query it, to wait for a condition, and to recompute a chain.
#
#   use ProjectorTest;
#   use_node($node);                          # database postgres
#   use_node($node, 'other');
#   sql('SELECT 1');  sql('SELECT 1', 'db');  # dies with its error
#   comes_true("count(*) = 1 FROM t", 'one row');       # an assertion
#   wait_until("count(*) = 1 FROM t");                  # dies if it never is
#   error_of('SELECT 1/0');                   # '22012: division by zero'
#
# A condition is what follows SELECT, or a whole query that returns a boolean.
package ProjectorTest;
use strict;
use warnings;
use Carp qw(croak);
use Exporter qw(import);
use Test::More ();

our @EXPORT = qw(use_node sql sql_in comes_true wait_until error_of $CHAIN $STOCK);

my ($node, $database);

# The chain of some numbers: the result of a handler that computes
# md5(chain || number) for each of them, in order, starting with an empty chain.
our $CHAIN = <<'EOS';
CREATE FUNCTION chain(numbers bigint[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c text;
    n bigint;
BEGIN
    FOREACH n IN ARRAY numbers LOOP
        c := md5(coalesce(c, '') || n);
    END LOOP;
    RETURN c;
END $$;
EOS

# A read model, and a function for its expressions that fails on the quantities in
# table bad.
our $STOCK = <<'EOS';
CREATE TABLE stock (tenant_id text, item_id text, on_hand bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
	PRIMARY KEY (tenant_id, item_id));
CREATE TABLE bad (qty bigint);
CREATE FUNCTION good(qty bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM bad b WHERE b.qty = good.qty) THEN
		RAISE EXCEPTION 'bad quantity %', qty;
	END IF;
	RETURN qty;
END $$;
EOS

# Use this server from now on, and this database unless a call names one.
sub use_node
{
	my ($server, $default) = @_;
	$node = $server;
	$database = $default // 'postgres';
	return;
}

sub sql
{
	my ($text, $db) = @_;
	return $node->safe_psql($db // $database, $text);
}

# The same, for files that use many databases: the database comes first.
sub sql_in
{
	my ($db, $text) = @_;
	return $node->safe_psql($db, $text);
}

sub poll
{
	my ($condition, $db) = @_;
	my $query = $condition =~ /^\s*(SELECT|WITH|TABLE)\b/i ? $condition : "SELECT $condition";
	return $node->poll_query_until($db // $database, $query);
}

sub comes_true
{
	my ($condition, $name, $db) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return Test::More::ok(poll($condition, $db), $name);
}

# Waits for a condition without counting as an assertion.
sub wait_until
{
	my ($condition, $db) = @_;
	poll($condition, $db) or croak "it never came true that $condition";
	return;
}

# The error of a command, with its SQLSTATE, detail and hint, or "none".
sub error_of
{
	my ($text, $db) = @_;
	my (undef, undef, $err) = $node->psql($db // $database, "\\set VERBOSITY verbose\n$text");
	return $err =~ /ERROR:\s+(.*)/s ? $1 : 'none';
}

# A process writes its line counts only when it exits normally.  PostgreSQL::Test
# stops servers in a way that prevents this.
END
{
	local $? = $?;
	$node->stop('fast', fail_ok => 1) if $ENV{PROJECTOR_COVERAGE} && $node;
}

1;
