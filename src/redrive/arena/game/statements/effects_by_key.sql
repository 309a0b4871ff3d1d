-- purpose: how often each job had its effect, by the audit lines and cleanups
select job_key, count(*) as effects
from (select job_key from game_audit union all select job_key from game_cleanups) effects_of_all
group by job_key
order by job_key
