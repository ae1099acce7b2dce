# A role that may not drop the extension cannot stop its workers by trying to.  If
# a role that may drop it rolls back, workers are stopped only until then.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use IPC::Run;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
fsync = off
EOC
$node->start;
use_node($node);

my $workers = q{(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = 'postgres')};

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE counts (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('counts', fold_columns => '{"n": "s.n+1"}', targets => '{counts}');
CREATE FUNCTION depends(e projector.event) RETURNS void LANGUAGE sql AS '';
CREATE ROLE joe LOGIN;
CREATE ROLE owner LOGIN SUPERUSER;
EOS

my ($in, $out, $err, $psql);

sub open_session
{
	my ($user) = @_;
	($in, $out, $err) = ('', '', '');
	$psql = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . " user=$user" ], \$in, \$out, \$err,
		IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default));
	return;
}

sub say_to
{
	my ($query) = @_;
	$out = '';
	$in .= "$query;\n\\echo DONE\n";
	$psql->pump until $out =~ /DONE/;
	return;
}

sub close_session
{
	$in .= "ROLLBACK;\n\\q\n";
	$psql->finish;
	return;
}

sub serves
{
	my ($what) = @_;
	ok($node->poll_query_until('postgres', "SELECT $workers = 1"), "$what: there is a worker");
	sql(q{SELECT projector_append('acme', gen_random_uuid()::text, 'E', '{}')});
	ok($node->poll_query_until('postgres', q{SELECT count(*) = (SELECT count(*) FROM projector.events) FROM counts}),
		"$what: events are applied");
	return;
}

sub worker_pid
{
	return sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = 'postgres'});
}

serves('before');
my $pid = worker_pid();

# A role that owns nothing
open_session('joe');
foreach my $statement ('DROP OWNED BY joe', 'DROP OWNED BY CURRENT_USER CASCADE', 'DROP EXTENSION projector CASCADE',
	'DROP SCHEMA public CASCADE', 'DROP OWNED BY owner, joe CASCADE')
{
	say_to('BEGIN');
	say_to('SAVEPOINT a');
	say_to($statement);
	serves("joe says $statement");
	say_to('ROLLBACK TO a');
	serves("and takes it back");
	say_to('ROLLBACK');
}
close_session();
is(worker_pid(), $pid, 'it is the same worker all the time');

# A role that may: the workers are stopped until the rollback, and come back.
open_session('owner');
say_to('BEGIN');
say_to('SAVEPOINT a');
say_to('DROP EXTENSION projector');
like($err, qr/cannot drop extension projector because other objects depend on it/, 'it is refused for another reason');
say_to('ROLLBACK TO a');
serves('a refused DROP, rolled back');
say_to('SAVEPOINT b');
say_to('SAVEPOINT c');
say_to('DROP EXTENSION projector CASCADE');
is(sql("SELECT $workers"), 0, 'there are no workers while it is dropped');
say_to('RELEASE c');
is(sql("SELECT $workers"), 0, 'nor after its savepoint is released');
say_to('ROLLBACK TO b');
serves('a DROP, rolled back with an outer savepoint');
close_session();

# The owner's own objects, among them the extension
sql('UPDATE pg_extension SET extowner = (SELECT oid FROM pg_roles WHERE rolname = $$owner$$) WHERE extname = $$projector$$');
open_session('owner');
say_to('BEGIN');
say_to('DROP OWNED BY owner CASCADE');
is(sql("SELECT $workers"), 0, 'DROP OWNED BY its owner ends the workers');
say_to('ROLLBACK');
close_session();
serves('DROP OWNED, rolled back');

$node->stop('fast');
done_testing();
