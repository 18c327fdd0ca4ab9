-- A page of history costs the same however long the history is: newest first, of one status or of all.
create index approvals_by_status on approvals (status, requested_at, id);
create index approvals_by_time on approvals (requested_at, id);
