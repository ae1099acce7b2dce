# Owns what the TAP files share: which server and database are being asked,
# and how to ask, to wait until something is so, and to recompute a chain.
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

our @EXPORT = qw(use_node sql sql_in comes_true wait_until error_of $CHAIN);

my ($node, $database);

# The chain of some numbers: what a handler leaves that writes
# md5(chain || number) for each of them, in order, from the empty chain on.
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

# From now on this server is asked, in this database unless a call names one.
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

# The same, for files that speak of many databases: the database comes first.
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

# A step on the way, not what the test is about.
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

# A process counts the lines it has run when it ends by itself, which it does
# not if the server is stopped as PostgreSQL::Test does it.
END
{
	local $? = $?;
	$node->stop('fast', fail_ok => 1) if $ENV{PROJECTOR_COVERAGE} && $node;
}

1;
