/*
 * alert.c
 *	  Alerts that a person should act on: a WARNING in the server log and a
 *	  notification on channel projector_alert.
 *
 * Only workers send alerts, because no client sees what happens in them.  In a
 * client's session the client sees the error itself.  NOTIFY is not used
 * there: it serializes commits, which is too expensive in a transaction that
 * appends.
 */
#include "base/compat.h"

#include "commands/async.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"

#include "ipc/shmem.h"
#include "state/alert.h"

#define CHANNEL				"projector_alert"

/*
 * A notification has at most 7999 bytes.  Escaping as JSON can make a text six
 * times as long.
 */
#define MAX_PAYLOAD			7999
#define MAX_MESSAGE			500

/* Send no notification if the queue is fuller than this. */
#define MAX_QUEUE_USAGE		0.5

static void
add_string(StringInfo json, const char *name, const char *value)
{
	appendStringInfo(json, "%s\"%s\": ", json->len > 1 ? ", " : "", name);
	escape_json(json, value);
}

/* Add a member of the event's metadata, if it is there. */
static void
add_trace(StringInfo json, const char *name, const PjEvent *event)
{
	const char *value = pj_event_trace(event, name);

	if (value)
		add_string(json, name, value);
}

static void
add_number(StringInfo json, const char *name, int64 value)
{
	appendStringInfo(json, ", \"%s\": %lld", name, (long long) value);
}

/*
 * "brief" leaves out values that may be long; log_seq still identifies the
 * event.
 */
static char *
alert_payload(const PjProjection *projection, const PjEvent *event,
			  const char *what, int errors, const ErrorData *error, bool brief)
{
	StringInfoData json;
	char	   *message = pstrdup(error->message ? error->message : "");

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	add_string(&json, "alert", what);
	add_string(&json, "projection", projection->name);
	add_number(&json, "log_seq", pj_event_log_seq(event));
	add_number(&json, "sequence_number", pj_event_sequence(event));
	add_number(&json, "error_count", errors);
	add_string(&json, "error_code", unpack_sql_state(error->sqlerrcode));
	if (!brief)
	{
		message[pg_mbcliplen(message, strlen(message), MAX_MESSAGE)] = '\0';
		add_string(&json, "tenant_id",
				   TextDatumGetCString(pj_event_tenant(event)));
		add_string(&json, "aggregate_id",
				   TextDatumGetCString(pj_event_aggregate(event)));
		add_string(&json, "event_type",
				   TextDatumGetCString(pj_event_type(event)));
		add_string(&json, "error_message", message);
		add_trace(&json, "traceparent", event);
		add_trace(&json, "correlation_id", event);
	}
	appendStringInfoChar(&json, '}');
	return json.data;
}

static void
notify(const char *payload)
{
	if (DatumGetFloat8(DirectFunctionCall1(pg_notification_queue_usage,
										   (Datum) 0)) > MAX_QUEUE_USAGE)
		ereport(LOG,
				errmsg("no notification on channel \"%s\": the queue is filling up",
					   CHANNEL));
	else
		Async_Notify(CHANNEL, payload);
}

/*
 * Send an alert: an event is dead or was skipped, or its aggregate has reached
 * error_threshold.
 */
void
pj_alert(const PjProjection *projection, const PjEvent *event,
		 const char *what, int errors, const ErrorData *error)
{
	char	   *payload;

	if (!pj_is_worker())
		return;
	ereport(WARNING,
			errcode(error->sqlerrcode),
			errmsg("projection \"%s\": event %lld of aggregate \"%s\" of tenant \"%s\": %s",
				   projection->name, (long long) pj_event_sequence(event),
				   TextDatumGetCString(pj_event_aggregate(event)),
				   TextDatumGetCString(pj_event_tenant(event)), what),
			errdetail("After %d errors: %s", errors,
					  error->message ? error->message : ""));
	payload = alert_payload(projection, event, what, errors, error, false);
	if (strlen(payload) > MAX_PAYLOAD)
		payload = alert_payload(projection, event, what, errors, error, true);
	notify(payload);
}
