-- purpose: posts a settled day's money to the game's accounts; append-only, so that a second run shows
insert into game_postings (job_key, currency, gross, fee, net)
values (:job_key, :currency, :gross, :fee, :net)
