"""projector verify: is the read model what a rebuild would give?"""
from ..output import print_json, print_table, shown
from ..text import count, visible

HELP = {"verify": "compare a read model with what a rebuild would give; exit code 1 if it differs"}

COLUMNS = [("tenant_id", "TENANT"), ("matches", "MATCHES"), ("differing_rows", "DIFFERING ROWS"),
           ("live_digest", "DIGEST")]
SAMPLES = 3


def arguments(parser, _name):
    parser.add_argument("projection", metavar="PROJECTION")
    parser.add_argument("--tenant", metavar="T", help="only this tenant")


def show_samples(rows):
    for row in rows:
        for sample in (row["sample"] or [])[:SAMPLES]:
            print(f"tenant {visible(row['tenant_id'])}, key {shown(sample.get('key'))}")
            print(f"    live    {shown(sample.get('live'))}")
            print(f"    rebuilt {shown(sample.get('rebuilt'))}")


def run(server, options):
    rows = server.call("verify", options.projection, options.tenant)
    wrong = [row for row in rows if not row["matches"]]
    if options.json:
        print_json(rows)
    elif not rows:
        print("It has no tenants yet.")
    else:
        print_table(rows, COLUMNS)
        show_samples(wrong)
        if wrong:
            print(f"{count(len(wrong), 'tenant')} of {len(rows):,} differ. To repair: projector rebuild"
                  f" {visible(options.projection)} --watch")
    return 1 if wrong else 0
