# README.md and docs/: every block of SQL, Python, JavaScript and shell is run,
# page by page and in order, and what it prints is compared with the page.
#
# The conventions are in test/README.md.  docs/operations.md needs a server
# with problems, which 018_operations.pl makes; everything else is run here.
# DOCS_PAGE="docs/tutorial.md ..." runs only those pages.  DOCS_ACCEPT names a
# directory to write the pages to, with the actual output.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Cwd qw(getcwd);
use File::Basename qw(dirname);
use Test::More;
use Time::HiRes qw(usleep);

# Debian's packages work only with Debian's interpreter, which may not be the
# first in PATH.
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';
my $node_path = join ':', grep { defined && length }
  ($ENV{NODE_PATH}, '/usr/share/nodejs', '/usr/lib/nodejs', '/usr/share/node_modules',
	'/usr/local/share/projector-harness/usr/share/nodejs');

my %no_code = map { $_ => 1 } qw(text mermaid json signature);
my %runs = (
	sql => [ 'psql', '-X', '-q' ],
	python => [ $python, '-u', '-' ],
	js => [ 'node', '-' ],
	sh => [ 'bash', '-e' ]);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = '100 ms'
fsync = off
EOC
$node->start;

# The pages: README.md and everything below docs/.
sub pages
{
	return split ' ', $ENV{DOCS_PAGE} if $ENV{DOCS_PAGE};
	my @found = map { chomp; $_ } `find docs -name '*.md' | LC_ALL=C sort`;
	return ('README.md', @found);
}

# A page as a list of steps: code blocks with their expected output, and what
# the test does between them (comments that a reader does not see).
sub read_page
{
	my ($file) = @_;
	my ($in, @steps);
	my $number = 0;

	foreach my $line (split /\n/, slurp_file($file))
	{
		$number++;
		if (defined $in)
		{
			if ($line =~ $in->{end})
			{
				$in->{last} = $number;
				push @steps, $in;
				undef $in;
			}
			else
			{
				$in->{text} .= "$line\n";
			}
		}
		elsif ($line =~ /^\s*```(\S*)\s*(.*)$/)
		{
			$in = { kind => $1, info => $2, line => $number, text => '', end => qr/^\s*```\s*$/ };
		}
		elsif ($line =~ /^<!-- until (.*) -->$/)
		{
			push @steps, { kind => 'until', line => $number, text => $1 };
		}
		elsif ($line =~ /^<!-- setup\s*$/)
		{
			$in = { kind => 'setup', line => $number, text => '', end => qr/^-->\s*$/ };
		}
		elsif ($line =~ /\S/ && @steps)
		{
			# Output belongs to the block right above it, with nothing between.
			$steps[-1]{closed} = 1;
		}
	}
	die "$file: a block is not closed" if defined $in;
	return @steps;
}

# Run one block and return what it prints, errors and notices included.
sub run_block
{
	my ($database, $kind, $text) = @_;
	my $out = '';
	local %ENV = (%ENV,
		PGHOST => $node->host,
		PGPORT => $node->port,
		PGDATABASE => $database,
		PGUSER => 'postgres',
		PGAPPNAME => 'docs',
		NODE_PATH => $node_path,
		PATH => getcwd() . "/bin:$ENV{PATH}",
		LC_ALL => 'C.UTF-8');
	$ENV{PGUSER} = getpwuid($<) if defined getpwuid($<);
	eval {
		IPC::Run::run($runs{$kind}, '<', \$text, '>', \$out, '2>&1',
			IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	} or $out .= $@;
	return tidy($out);
}

# Blanks at the end of lines, and empty lines at the end, do not count.
sub tidy
{
	my ($text) = @_;
	$text =~ s/[ \t]+$//mg;
	$text =~ s/\s+\z//;
	$text =~ s/\A\n+//;
	return $text;
}

# "..." in the expected output stands for anything: within a line, or, on a
# line of its own, for any number of lines.
sub output_matches
{
	my ($got, $expected) = @_;
	my $pattern = quotemeta $expected;
	$pattern =~ s/^(\\ )*\\\.\\\.\\\.$/(?:.*\\n)*?.*/mg;
	$pattern =~ s/\\\.\\\.\\\./.*?/g;
	return $got =~ /\A$pattern\z/;
}

sub run_page
{
	my ($file, $database) = @_;
	my @steps = read_page($file);
	my $blocks = 0;
	my @lines = split /\n/, slurp_file($file);

	$node->safe_psql('postgres', qq{CREATE DATABASE "$database"});
	while (my $step = shift @steps)
	{
		my $name = "$file, line $step->{line}";

		if ($step->{kind} eq 'until')
		{
			ok($node->poll_query_until($database, $step->{text}), "$name: until $step->{text}");
		}
		elsif ($step->{kind} eq 'setup')
		{
			is(run_block($database, 'sql', $step->{text}), '', "$name: set up");
		}
		elsif ($no_code{ $step->{kind} })
		{
			next;
		}
		elsif ($step->{info} =~ /^no-run: \S/)
		{
			note("$name is not run: $step->{info}");
		}
		elsif (!$runs{ $step->{kind} })
		{
			fail("$name: a block \"$step->{kind}\" needs a reason not to be run (no-run: ...)");
		}
		else
		{
			my ($expected, $output) = ('');
			if (!$step->{closed} && @steps && $steps[0]{kind} eq 'text')
			{
				$output = shift @steps;
				$expected = tidy($output->{text});
			}
			my $got = run_block($database, $step->{kind}, $step->{text});
			if (!ok(output_matches($got, $expected), "$name: $step->{kind}"))
			{
				diag("--- printed:\n$got\n--- the page says:\n$expected\n---");
				@lines[ $output->{line} - 1 .. $output->{last} - 1 ] = () if $output;
				$lines[ $step->{last} - 1 ] .= "\n```text\n$got\n```" if length $got;
			}
			$blocks++;
		}
	}
	accept_page($file, grep { defined } @lines) if $ENV{DOCS_ACCEPT};
	# Its worker frees a slot for the next page's.
	$node->safe_psql('postgres', qq{DROP DATABASE "$database" WITH (FORCE)});
	note("$file: $blocks blocks");
	return $blocks;
}

# The page with what its blocks have printed.
sub accept_page
{
	my ($file, @lines) = @_;
	my $path = "$ENV{DOCS_ACCEPT}/$file";
	system('mkdir', '-p', dirname($path)) == 0 or die "$path: cannot make its directory";
	append_to_file($path, join('', map { "$_\n" } @lines));
	return;
}

# The anchors that GitHub makes from headings.
sub anchors
{
	my ($file) = @_;
	my %anchor;
	my $code = 0;
	foreach my $line (split /\n/, slurp_file($file))
	{
		$code = !$code if $line =~ /^\s*```/;
		next if $code || $line !~ /^#+ (.*)/;
		my $text = lc $1;
		$text =~ s/[^\w\- ]//g;
		$text =~ s/ /-/g;
		$anchor{$text} = 1;
	}
	return \%anchor;
}

# Every link within the project leads somewhere.
sub check_links
{
	my ($file) = @_;
	my @broken;
	my $text = slurp_file($file);
	$text =~ s/^\s*```.*?^\s*```\s*$//msg;
	while ($text =~ /\]\(([^)\s]+)\)/g)
	{
		my $link = $1;
		next if $link =~ m{^https?://};
		my ($path, $anchor) = split /#/, $link, 2;
		my $target = $path eq '' ? $file : dirname($file) . "/$path";
		push @broken, $link
		  unless -e $target && (!defined $anchor || anchors($target)->{$anchor});
	}
	is(join(', ', @broken), '', "$file: its links lead somewhere");
	return;
}

# Check first for everything that the blocks need besides the server.
sub check_drivers
{
	local $ENV{NODE_PATH} = $node_path;
	is(system("$python -c 'import psycopg' >/dev/null 2>&1"), 0,
		"Python has psycopg (Debian: python3-psycopg)");
	is(system(q{node -e "require('pg')" >/dev/null 2>&1}), 0,
		"Node has pg (Debian: nodejs, node-pg)");
	return;
}

check_drivers();

my @pages = pages();
my $blocks = 0;
my $number = 0;
foreach my $page (@pages)
{
	check_links($page);
	next if $page eq 'docs/operations.md' || $page =~ m{^docs/decisions/};
	$blocks += run_page($page, 'page' . ++$number);
}
cmp_ok($blocks, '>', 0, "$blocks blocks were run");

my @readme = split /\n/, slurp_file('README.md');
cmp_ok(scalar @readme, '<=', 150, 'README.md has at most 150 lines');
is(join(', ', grep { length($readme[ $_ - 1 ]) > 100 } 1 .. @readme), '',
	'of at most 100 characters');

$node->stop;
done_testing();
