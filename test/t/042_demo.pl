# "make demo" completes, prints less than 60 lines, and with PAUSE=1 waits for
# Enter between chapters.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
fsync = off
EOC
$node->start;

local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
local $ENV{PAUSE} = 1;

my ($in, $out, $err) = ('', '', '');
my $demo = IPC::Run::start([ 'bash', 'demo/demo' ], '<', \$in, '>', \$out, '2>', \$err,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

my @chapters = ('A fold keeps a table', 'Two writers, one version', 'A poison event',
	'A rebuild while a reader watches', 'A proof');
foreach my $n (1 .. @chapters)
{
	my $title = "$n. " . $chapters[ $n - 1 ];
	my $next = $n + 1;
	$demo->pump until $out =~ /^\Q$title\E$/m;
	pass("chapter $title");
	unlike($out, qr/^$next\. /m, 'the next one waits for Enter');
	$in .= "\n" if $n < @chapters;
}
ok($demo->finish, 'it succeeds');
is($err, '', 'without errors');
cmp_ok(scalar(() = $out =~ /\n/g), '<', 60, 'in less than 60 lines');
is(join(', ', grep { length > 110 } split /\n/, $out), '', 'none of them long');

like($out, qr/^   On hand: acme 3, globex 70\.$/m, 'two tenants, one fold');
like($out, qr/^   The other: ERROR:  aggregate "lamp" of tenant "acme" is not at/m, 'a conflict is told');
like($out, qr/^   The lamp's next event is held\. The chair is not concerned: 8 on hand\.$/m, 'a poison event holds its aggregate');
like($out, qr/^   projector_retry\(.*\) +-> applied$/m, 'and is repaired');
like($out, qr/^   Acme has 6 lamps\.$/m, 'what waited follows');
like($out, qr/^   It read \d+ times and saw only this: 502 items with 40014 pieces, then 502 items with 60014 pieces\.$/m,
	'a reader sees the old rows, then the new ones');
like($out, qr/acme differs, globex matches: lamp is 1000000 and should be 6\n.*\n   acme matches, globex matches\n/,
	'what is wrong is found and repaired');
like($out, qr/^The numbers\n   100007 events in the log/m, 'the numbers are at the end');

$node->stop;
done_testing();
