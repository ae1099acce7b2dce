# A rebuild in one transaction of a fold whose key is not the aggregate, which is
# applied in log order: one tenant, 1,000 aggregates, 10,000 keys, so many events.
for size in ${SIZES:-4000 40000 400000}; do
	fresh
	fill_totals "$size" 10000
	line rebuild_log "$size" "$(time_of "SELECT projector_rebuild('totals')")" ms
done
