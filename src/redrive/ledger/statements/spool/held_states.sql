-- purpose: how many messages were listed in each state
SELECT state, count(*) FROM held GROUP BY state;
