# Builds, installs and tests the projector extension (PGXS).
#
#   make, make install, make installcheck   the usual PGXS targets
#   make demo                               a demonstration on a throwaway server
#                                           (PAUSE=1: Enter between chapters)
#   make test                               every test suite on a throwaway server
#                                           (PG=17 or 18: with that PostgreSQL, in a chroot)
#   make test-matrix                        the same with 15, 17 and 18
#   make test-upgrade                       pg_upgrade from 15 to 17 and 18
#   make bench                              every benchmark on a throwaway server
#                                           (bench/compare REVISION: what a change costs)
#   make bench-report                       the same, written to docs/explanation/cost.md
#   make check-layers                       which folders of src/ may use which
#   make format                             lay out the C files (pgindent)
#   make lint                               static analysis
#   make coverage                           which lines the tests run
#   make deb                                Debian packages, in build/ (PG=17, PG=18)
#   make test-deb                           the same, installed in a fresh Debian
#   make dist                               the release archive for PGXN, in build/
#
# All but the first line, check-layers and dist need only make and a shell at
# first: as root on Debian they install the missing packages.

PG ?= 15
DEBIAN_PG_CONFIG := /usr/lib/postgresql/$(PG)/bin/pg_config
PG_CONFIG ?= $(firstword $(wildcard $(DEBIAN_PG_CONFIG)) pg_config)
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)

# In a build in another directory (make -f /source/Makefile, or VPATH=/source)
# the source is not in the current directory.
top := $(patsubst %/,%,$(or $(VPATH),$(dir $(firstword $(MAKEFILE_LIST)))))

MODULE_big = projector
EXTENSION = projector
EXTENSION_SQL = projector--1.0.sql
DATA_built = $(EXTENSION_SQL)

# Released versions, and the scripts that lead from one to the next.
DATA = $(patsubst $(top)/%,%,$(sort $(wildcard $(addprefix \
	$(top)/src/sql/,released/*.sql upgrade/*.sql))))

OBJS := $(patsubst $(top)/%.c,%.o,$(sort $(wildcard $(top)/src/*.c $(top)/src/*/*.c)))
# Without objects, an empty library would be linked without an error.
ifeq ($(OBJS),)
SHLIB_PREREQS = no-objects
endif

# Headers are named by folder: "log/append.h".
PG_CPPFLAGS = -iquote $(srcdir)/src

# Unused parameters are part of the fmgr and hook conventions; the other two
# warnings fire inside the server headers.
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers $(if $(WERROR),-Werror)

# Topics named in REGRESS_FIRST run before the others, which run by name.
REGRESS_FIRST =
REGRESS_ALL := $(patsubst $(top)/sql/%.sql,%,$(sort $(wildcard $(top)/sql/*.sql)))
REGRESS := $(strip $(REGRESS_FIRST) $(filter-out $(REGRESS_FIRST),$(REGRESS_ALL)))
ISOLATION := $(patsubst $(top)/test/isolation/specs/%.spec,%,$(sort $(wildcard $(top)/test/isolation/specs/*.spec)))

# The tests apply events themselves, so no worker may run in their databases.
# Those are created before pg_regress starts, because it cannot change their
# settings. The tests include files from the current directory.
REGRESS_OPTS = --use-existing
ISOLATION_OPTS = --inputdir=$(top)/test/isolation --use-existing
REGRESS_PREP = prepare-installcheck
installcheck: export PGOPTIONS += -c projector.autostart=off

EXTRA_CLEAN = build results output_iso regression.diffs regression.out

HARNESS = test/harness

ifneq ($(wildcard $(PGXS)),)
include $(PGXS)
else
all install installcheck:
	@echo '$(PG_CONFIG) does not lead to PGXS: install postgresql-server-dev-$(PG),' >&2
	@echo 'or name another server with PG_CONFIG=/path/to/pg_config.' >&2
	@echo '("make test" and "make demo" install what they need when run as root.)' >&2
	@exit 1

clean:
	rm -f $(OBJS) $(OBJS:.o=.bc) $(MODULE_big).so $(EXTENSION_SQL)
	rm -rf $(EXTRA_CLEAN)
endif

# Absolute, because make would find a relative one in VPATH.
OBJECT_DIRS := $(addprefix $(CURDIR)/,$(sort $(dir $(OBJS))))

$(OBJS) $(OBJS:.o=.bc): $(sort $(wildcard $(top)/src/*/*.h)) $(top)/Makefile | $(OBJECT_DIRS)

no-objects:
	@echo 'there are no C files in $(top)/src' >&2
	@exit 1

$(OBJECT_DIRS):
	mkdir -p $@

prepare-installcheck:
	$(if $(REGRESS),$(top)/$(HARNESS)/create-database $(CONTRIB_TESTDB))
	$(if $(ISOLATION),$(top)/$(HARNESS)/create-database $(ISOLATION_TESTDB))
	[ -e sql ] || ln -s $(abspath $(top))/sql sql

SQL_PARTS = $(sort $(wildcard $(top)/src/sql/[0-9][0-9]_*.sql))

$(EXTENSION_SQL): $(SQL_PARTS) $(top)/Makefile
	{ printf '%s\n' '\echo Use "CREATE EXTENSION projector" to load this file. \quit'; \
	  cat $(SQL_PARTS); } >$@.tmp
	mv $@.tmp $@

demo:
	@$(HARNESS)/demo

test:
	@$(HARNESS)/test

test-matrix:
	@$(HARNESS)/matrix 15 17 18

test-upgrade:
	@$(HARNESS)/upgrade 17 18

bench:
	@for b in bench/*; do \
		if [ -f "$$b" ] && [ -x "$$b" ] && [ "$$b" != bench/compare ] && \
			[ "$$b" != bench/report ] && [ "$$b" != bench/soak ]; then \
			$(HARNESS)/with-cluster "$$b" || exit 1; \
		fi; \
	done

bench-report:
	@bench/report

check-layers:
	@$(HARNESS)/check-layers

format lint coverage:
	@$(HARNESS)/packages $$(sed -n 's/^# packages: //p' $(HARNESS)/$@)
	@$(HARNESS)/$@

deb test-deb dist:
	@$(HARNESS)/$@

.PHONY: deb test-deb dist no-objects prepare-installcheck demo test test-matrix test-upgrade bench bench-report check-layers format lint coverage
