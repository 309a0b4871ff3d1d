-- purpose: every reported exception, for the claims
select id, job_key, kind, payment_id, provider_ref, detail
from game_exceptions
order by id
