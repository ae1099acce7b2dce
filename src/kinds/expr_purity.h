/*
 * expr_purity.h
 *	  What the value of an expression depends on.
 */
#ifndef PJ_EXPR_PURITY_H
#define PJ_EXPR_PURITY_H

#include "base/compat.h"
#include "nodes/nodes.h"

extern bool pj_expr_depends_on_more(Node *expr, const char *what);
extern bool pj_expr_has_literal_now(Node *expr, const char *source);
extern bool pj_expr_may_ask_settings(Node *expr);

#endif							/* PJ_EXPR_PURITY_H */
