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
#
# demo, test, bench and the last three need only make and a shell at first: as root on Debian
# they install the missing packages.

PG ?= 15
DEBIAN_PG_CONFIG := /usr/lib/postgresql/$(PG)/bin/pg_config
PG_CONFIG ?= $(firstword $(wildcard $(DEBIAN_PG_CONFIG)) pg_config)
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)

MODULE_big = projector
EXTENSION = projector
EXTENSION_SQL = projector--1.0.sql
DATA_built = $(EXTENSION_SQL)

# Released versions, and the scripts that lead from one to the next.
DATA = $(patsubst $(or $(top),.)/%,%,$(sort $(wildcard $(addprefix \
	$(or $(top),.)/src/sql/,released/*.sql upgrade/*.sql))))

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))

# Headers are named by folder: "log/append.h".
PG_CPPFLAGS = -iquote $(srcdir)/src

# Unused parameters are part of the fmgr and hook conventions; the other two
# warnings fire inside the server headers.
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers $(if $(WERROR),-Werror)

# Topics named in REGRESS_FIRST run before the others, which run by name.
REGRESS_FIRST =
REGRESS_ALL := $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS := $(strip $(REGRESS_FIRST) $(filter-out $(REGRESS_FIRST),$(REGRESS_ALL)))
ISOLATION := $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
# Payloads are JSON, which should be UTF-8.
REGRESS_OPTS = --encoding=UTF8
ISOLATION_OPTS = --inputdir=test/isolation --encoding=UTF8

# The tests apply events themselves, so no worker may run.
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

$(OBJS) $(OBJS:.o=.bc): $(sort $(wildcard src/*/*.h)) Makefile

SQL_PARTS = $(sort $(wildcard src/sql/[0-9][0-9]_*.sql))

$(EXTENSION_SQL): $(SQL_PARTS) Makefile
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

.PHONY: demo test test-matrix test-upgrade bench bench-report check-layers format lint coverage
