# Owns which files belong to the source tree: everything that is not built or
# written by a test. Sourced by cluster.sh and chroot.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# The source tree, as a tar archive on standard output.
pack_source() {
	# Status 1: a file was saved while being read; the next run sees it.
	tar -C "$root" --warning=no-file-changed --exclude=./.git --exclude=./build \
		--exclude='*.o' --exclude='*.bc' --exclude='*.so' \
		--exclude='./projector--1.0.sql' --exclude=./results --exclude=./output_iso \
		--exclude=./tmp_check --exclude='./regression.*' -cf - . || [ $? = 1 ]
}
