-- When a key was last used, for whoever decides whether it can go; kept now and then, not at each call.
alter table agent_keys add column last_used_at bigint;

-- The agents on a site.
create index agent_sites_site on agent_sites (site_id);
