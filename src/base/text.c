/*
 * text.c
 *	  Helpers for values passed from SQL: texts in bytewise order, members
 *	  of JSON objects.
 */
#include "base/compat.h"

#include "base/text.h"

bool
pj_text_equal(Datum a, Datum b)
{
	text	   *ta = DatumGetTextPP(a);
	text	   *tb = DatumGetTextPP(b);

	return VARSIZE_ANY_EXHDR(ta) == VARSIZE_ANY_EXHDR(tb) &&
		memcmp(VARDATA_ANY(ta), VARDATA_ANY(tb), VARSIZE_ANY_EXHDR(ta)) == 0;
}

/* Compare bytewise, as our tables do. */
int
pj_text_compare(Datum a, Datum b)
{
	text	   *ta = DatumGetTextPP(a);
	text	   *tb = DatumGetTextPP(b);
	int			la = VARSIZE_ANY_EXHDR(ta);
	int			lb = VARSIZE_ANY_EXHDR(tb);
	int			cmp = memcmp(VARDATA_ANY(ta), VARDATA_ANY(tb), Min(la, lb));

	return cmp != 0 ? cmp : (la > lb) - (la < lb);
}

static int
compare_texts(const void *a, const void *b)
{
	return pj_text_compare(*(const Datum *) a, *(const Datum *) b);
}

/* Sort texts bytewise and remove duplicates.  Returns how many are left. */
int
pj_texts_unique(Datum *texts, int n)
{
	int			kept = 0;

	if (n > 1)
		qsort(texts, n, sizeof(Datum), compare_texts);
	for (int i = 0; i < n; i++)
		if (kept == 0 || !pj_text_equal(texts[kept - 1], texts[i]))
			texts[kept++] = texts[i];
	return kept;
}

/* Is a text in an array that is sorted bytewise? */
bool
pj_text_among(Datum value, const Datum *sorted, int n)
{
	return n > 0 && bsearch(&value, sorted, n, sizeof(Datum),
							compare_texts) != NULL;
}

/* Look up a member of a JSON object.  Returns false if there is none. */
bool
pj_json_member(Jsonb *json, const char *name, JsonbValue *value)
{
	return getKeyJsonValueFromContainer(&json->root, name, strlen(name),
										value) != NULL;
}
