-- purpose: every correction, for the claims
select id, job_key, payment_id, from_state, to_state, from_version, refunded, resubmitted
from game_corrections
order by id
