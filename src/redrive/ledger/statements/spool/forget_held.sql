-- purpose: make room for a second listing
DELETE FROM held;
