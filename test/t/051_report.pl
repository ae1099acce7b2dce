# bin/projector report: in a real browser, with names and errors that try to break out of the
# page, and with 5,000 tenants.
#
# Chromium prints the page as it is after it was loaded.  To measure, a copy of the page gets
# a script at its end, and loses its Content-Security-Policy.  So in the copy a script that a
# name smuggled in would run, if it were not escaped; and the page itself is safe twice.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run ();
use JSON::PP qw(decode_json);
use ProjectorTest;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.enabled = off
fsync = off
EOC
$node->start;
use_node($node);
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';
my $dir = PostgreSQL::Test::Utils::tempdir();
my $timeout = $PostgreSQL::Test::Utils::timeout_default;

sub report
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');
	my $begin = time;
	ok(IPC::Run::run([ 'bin/projector', 'report', @arguments ], '<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($timeout)), "report @arguments") or diag($err);
	return ($out, time - $begin);
}

# The page as a browser has it.
sub load
{
	my ($html, $width) = @_;
	my ($out, $err) = ('', '');
	my $file = "$dir/page.html";
	unlink $file;
	append_to_file($file, $html);
	IPC::Run::run([ 'chromium-headless-shell', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', "--user-data-dir=$dir/browser",
			'--virtual-time-budget=2000', "--window-size=$width,900", '--dump-dom', "file://$file" ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($timeout)) or diag($err);
	return $out;
}

# A copy without its policy and with a script of ours says what became of it.
sub measure
{
	my ($html, $width) = @_;
	$html =~ s/<meta http-equiv="Content-Security-Policy"[^>]*>// or die 'no policy';
	my $script = <<'EOJ';
<script>
const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1);
document.title = JSON.stringify({hacked: window.hacked || 0, inner: innerWidth, scroll: document.documentElement.scrollWidth,
	wide: wide.slice(0, 5).map(e => e.tagName + '.' + e.className), scripts: document.scripts.length,
	handlers: document.querySelectorAll('[onerror],[onload],[onclick],[onmouseover]').length,
	cards: document.querySelectorAll('.card').length, pairs: document.querySelectorAll('.pairs tbody tr').length,
	errors: document.querySelectorAll('#errors li').length, images: document.images.length});
</script>
EOJ
	$html =~ s{</body>}{$script</body>} or die 'no end';
	my ($title) = load($html, $width) =~ m{<title>(.*?)</title>} or return {};
	# A title that is not ours was written by a script that should not have run.
	return eval { decode_json($title) } // { hacked => "the title is $title" };
}

# ---- a database that is well ----

sql('CREATE EXTENSION projector');
my ($html) = report();
like($html, qr{<h1>Healthy</h1>}, 'nothing is wrong');
like($html, qr{There are none\.}, 'and there is nothing');

# ---- hostile names, and many tenants ----

# Each smuggles in a script, ends an attribute, reverses the text, or is long.
my @evil = (
	q{<script>window.hacked=1;document.title='hacked'</script>},
	q{"><img src=x onerror="window.hacked=1;document.title='hacked'">},
	q{'><svg onload=window.hacked=1>},
	q{</title></style></svg><script>window.hacked=1</script>},
	q{javascript:alert(1)//&lt;script&gt;},
	"right \x{202e}to left\x{202c} \x{200f}\x{2066}",
	"control \x{1b}[31m \x{7}",
	'long' x 50,
	'{{constructor}} ${1}');
my $quoted = join ',', map { "'" . s/'/''/gr . "'" } @evil;
utf8::encode($quoted);
sql(<<'EOS');
CREATE TABLE t (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
-- It fails with a text of 10 kB of the event's type, or of its tenant.
CREATE FUNCTION fail(what text) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '%', repeat(what, 1 + 10240 / length(what)) USING DETAIL = what, HINT = what;
END $$;
EOS
sql(<<"EOS");
DO \$\$
DECLARE
	evil text[] := ARRAY[$quoted];
	name text;
	i integer := 0;
BEGIN
	FOREACH name IN ARRAY evil[1:6] LOOP
		i := i + 1;
		EXECUTE format('CREATE TABLE %I (LIKE t INCLUDING ALL)', 't' || i || left(name, 20));
		PERFORM projector_create(name, targets => ARRAY[format('%I', 't' || i || left(name, 20))], mode => 'async', options => '{"max_attempts": 1}',
			fold_columns => CASE i WHEN 5 THEN '{"n": "s.n + 1"}' ELSE '{"n": "CASE WHEN e.aggregate_id LIKE ''bad%'' THEN fail(e.event_type) ELSE s.n + 1 END"}' END::jsonb);
		PERFORM projector_pause(name, reason => name) WHERE i = 6;
	END LOOP;
	FOREACH name IN ARRAY evil LOOP
		PERFORM projector_append(name || CASE name WHEN evil[8] THEN repeat('x', 800) ELSE '' END, 'bad ' || name, name, '{}', metadata => jsonb_build_object('traceparent', name, 'correlation_id', name));
	END LOOP;
END \$\$;
EOS
sql('SELECT projector_drain()') foreach 1 .. 3;
cmp_ok(sql('SELECT count(*) FROM projector.failures'), '>=', 36, 'events have failed');
sql(q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, recorded_at)
	SELECT 'tenant ' || i, 'a', 1, 'Happened', '{}', now() - interval '1 min' * (i % 60) FROM generate_series(1, 5000) i});
sql(q{SELECT projector_start_run(E'<script>window.hacked=1;document.title=\'hacked\'</script>', tenant_id => 'tenant 1')});
is(sql('SELECT count(DISTINCT tenant_id) >= 5000 FROM projector.status_by_tenant'), 't', 'there are 5,000 tenants');

# Others may use the machine.  So a loop that needs the processor shows how much longer
# everything takes, and the best of some attempts counts.
sub slowness
{
	my ($wall, $cpu) = (time, (times)[0]);
	my $sum = 0;
	while ((times)[0] - $cpu < 0.3) { $sum += $_ foreach 1 .. 10_000; }
	return (time - $wall) / 0.3;
}

my $seconds;
foreach my $attempt (1 .. 5)
{
	my $slow = slowness();
	($html, $seconds) = report();
	note(sprintf('%.2f s, while everything takes %.1f times as long', $seconds, $slow));
	$seconds /= $slow if $slow > 1;
	last if $seconds < 2;
}
cmp_ok(length $html, '<', 1_000_000, 'the page has less than 1 MB: ' . length $html);
cmp_ok($seconds, '<', 2, sprintf('and takes less than 2 s: %.2f s', $seconds));
like($html, qr{<h1>Critical</h1>}, 'health is at the top');
like($html, qr/Content-Security-Policy" content="default-src 'none'; style-src 'sha256-/, 'there is a policy');
unlike($html, qr/\bstyle="/, 'no style that the policy forbids');
unlike($html, qr{(?:src|href)\s*=\s*"?https?:}, 'nothing from elsewhere');
unlike($html, qr/\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]|[\x00-\x08\x0b-\x1f]/, 'no marks of direction, no control characters');
like($html, qr{<span class="mark">U\+202E</span>to left}, 'but they are shown');
like($html, qr/more characters\)/, 'long errors are cut');
like($html, qr/and [\d,]+ more tenants/, 'tenants that are left out are counted');
like($html, qr{SELECT \* FROM projector_requeue}, 'the command against a problem');

foreach my $width (390, 1440)
{
	my $seen = measure($html, $width);
	is($seen->{inner}, $width, "$width: the browser is that wide");
	is($seen->{hacked}, 0, "$width: no script has run");
	is($seen->{scripts}, 1, "$width: there is no script, except the one of this test");
	is($seen->{handlers}, 0, "$width: no handlers of events");
	is($seen->{images}, 0, "$width: no images");
	cmp_ok($seen->{scroll}, '<=', $width, "$width: it does not scroll sideways") or diag(explain($seen));
	is_deeply($seen->{wide}, [], "$width: nothing reaches over the edge");
	is($seen->{cards}, 6, "$width: a card for each projection");
	cmp_ok($seen->{pairs}, '<=', 50, "$width: at most 50 pairs");
	cmp_ok($seen->{errors}, '<=', 20, "$width: at most 20 errors");
}

# The page itself: its title is as it was written, and a script would not run.
my ($title) = $html =~ m{<title>(.*?)</title>};
like(load($html, 390), qr{<title>\Q$title\E</title>}, 'the page as it is: its title has not changed');
my $with = $html =~ s{</body>}{<script>document.title = 'it ran'</script></body>}r;
like(load($with, 390), qr{<title>\Q$title\E</title>}, 'the policy lets no script run');

# The style sheet is in effect under the policy: without it, the body would have a margin.
like($html, qr{<style>\n/\*}, 'there is a style sheet');

# ---- limits ----

sql(<<'EOS');
DO $$
BEGIN
	FOR i IN 1..50 LOOP
		EXECUTE format('CREATE TABLE many_%s (LIKE t INCLUDING ALL)', i);
		PERFORM projector_create('many ' || i, targets => ARRAY['many_' || i], fold_columns => '{"n": "s.n + 1"}');
	END LOOP;
END $$;
EOS
my $data = decode_json((report('--json'))[0]);
is(scalar @{ $data->{projections}{rows} }, 50, 'at most 50 projections');
is($data->{projections}{more}, 6, 'and the rest is counted');
cmp_ok(scalar @{ $data->{errors}{rows} }, '<=', 20, 'at most 20 errors');
cmp_ok((sort { $b <=> $a } map { length $_->{message} } @{ $data->{errors}{rows} })[0], '<', 560, 'of at most 500 characters');
($html) = report();
like($html, qr/and 6 more projections/, 'the page says so');
cmp_ok(length $html, '<', 1_000_000, 'the page has less than 1 MB: ' . length $html);

# ---- the timelines ----

sql(q{UPDATE projector.projection_failures SET first_failed_at = now() - interval '3 days'});
$data = decode_json((report('--json'))[0]);
is((grep { $_->{failures} } @{ $data->{failures}{bars} }), 0, 'a day is shown, and nothing failed in it');
$data = decode_json((report('--json', '--since', '7d'))[0]);
is((grep { $_->{failures} } @{ $data->{failures}{bars} }), 1, '--since shows more');
cmp_ok(scalar @{ $data->{failures}{bars} }, '<=', 49, 'in at most 48 bars and the one that has begun');
like((report('--since', '7d'))[0], qr/Failures per 6 hours/, 'whose width is told');

# ---- a reader ----

sql(q{CREATE ROLE watcher LOGIN; SELECT projector_grant('watcher', 'reader')});
like((report('-U', 'watcher'))[0], qr{<h1>Critical</h1>}, 'a reader sees it too');

$node->stop;
done_testing();
