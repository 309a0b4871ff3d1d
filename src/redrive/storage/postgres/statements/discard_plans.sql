-- purpose: plan anew, by what the tables hold now: a plan made for empty tables must not outlive a burst
DISCARD PLANS
