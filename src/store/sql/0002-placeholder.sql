-- Only keeps the numbers without a gap on this branch.
SELECT 1;
