-- purpose: how many jobs there are to look at again
SELECT count(*) FROM suspects;
