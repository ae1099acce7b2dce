# Owns which Debian has which PostgreSQL. Sourced by in-version, deb and test-deb.

# suites_of VERSION: where it is, the first choice first. A release of Debian has
# one major version.
suites_of() {
	case $1 in
	15) echo bookworm ;;
	17) echo trixie ;;
	18) echo forky sid ;;
	*) echo "Debian has no PostgreSQL $1" >&2; return 1 ;;
	esac
}

# suite_of VERSION: the release that its package is for.
suite_of() {
	local suites
	suites=$(suites_of "$1") || return
	echo "${suites%% *}"
}
