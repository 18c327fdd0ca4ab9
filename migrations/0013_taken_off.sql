-- Agents that somebody else than their owner took off a site: only an owner of the site puts them on it again.
create table agents_taken_off (
    agent_id text   not null references agents (id),
    site_id  text   not null references sites (id),
    at       bigint not null,
    primary key (agent_id, site_id)
);
create index agents_taken_off_site on agents_taken_off (site_id);
