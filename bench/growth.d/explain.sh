# projector_explain of one row of a fold whose key is not the aggregate: one
# tenant, 100 keys, so many events.
for size in ${SIZES:-3000 30000 300000}; do
	fresh
	fill_totals "$size" 100
	sql -o /dev/null -c "SELECT projector_rebuild('totals')" -c "VACUUM ANALYZE"
	line explain "$size" "$(time_of "SELECT 1 / (count(*) = $size / 100)::int FROM projector_explain('totals', 't', 'k7')")" ms
done
