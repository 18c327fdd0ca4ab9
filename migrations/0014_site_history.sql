-- A page of one site's whole history costs the same however long it is; what 0010 says holds for lists of every site.
create index approvals_by_site_time on approvals (site_id, requested_at, id);
