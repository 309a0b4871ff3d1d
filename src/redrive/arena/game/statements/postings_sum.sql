-- purpose: what was posted, by currency
select currency, sum(gross) as gross, sum(fee) as fee, sum(net) as net
from game_postings
group by currency
order by currency
