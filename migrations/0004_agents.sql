create table agents (
    id          text   not null primary key,
    name        text   not null,
    owner_id    text   not null references people (id),
    all_tools   bigint not null,
    created_at  bigint not null,
    disabled_at bigint,
    constraint agents_all_tools check (all_tools in (0, 1))
);
create unique index agents_name on agents (owner_id, name);

create table agent_sites (
    agent_id text not null references agents (id),
    site_id  text not null references sites (id),
    primary key (agent_id, site_id)
);

create table agent_tools (
    agent_id text not null references agents (id),
    tool     text not null,
    primary key (agent_id, tool)
);

-- Only the SHA-256 of a secret is kept.
create table agent_keys (
    id          text   not null primary key,
    agent_id    text   not null references agents (id),
    secret_hash text   not null,
    created_at  bigint not null,
    expires_at  bigint,
    revoked_at  bigint
);
create index agent_keys_agent on agent_keys (agent_id);
