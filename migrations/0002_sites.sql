-- A site and, while it lives, the row that every write to it locks first.
create table sites (
    id           text   not null primary key,
    slug         text   not null,
    title        text   not null,
    description  text   not null,
    settings_rev bigint not null,
    live_version bigint,            -- the pointer
    next_version bigint not null,   -- one more than the newest version
    state_rev    bigint not null,   -- moves with every write, so that an edit and its revert are a change
    node_count   bigint not null,
    state_hash   text   not null,   -- what approvals are bound to
    policy       text   not null,   -- canonical JSON
    created_at   bigint not null,
    deleted_at   bigint             -- a tombstone keeps id, title and records; the slug is free again
);
create unique index sites_slug on sites (slug) where deleted_at is null;
create index sites_tombstones on sites (slug, deleted_at);

-- The incremental set hash (LtHash), 2 KiB as text: read and written under the site's lock.
create table site_states (
    site_id text not null primary key references sites (id),
    digest_version bigint not null,
    lanes   text not null
);

create table memberships (
    site_id   text not null references sites (id),
    person_id text not null references people (id),
    role      text not null,
    primary key (site_id, person_id),
    constraint memberships_role check (role in ('viewer', 'editor', 'approver', 'owner'))
);
create index memberships_person on memberships (person_id);

-- The draft. A removed node stays as a row, so that the next publish and a voided request can name it; ids are never reused.
create table nodes (
    id         text   not null primary key,
    site_id    text   not null references sites (id),
    parent     text   not null, -- '' at the top; text rather than a reference so that one index serves both
    slug       text   not null, -- '' is the home page, at the top only
    kind       text   not null,
    position   bigint not null,
    title      text   not null,
    rev        bigint not null,
    hash       text   not null,
    state_rev  bigint not null, -- the site's counter at the last change
    updated_at bigint not null,
    deleted_at bigint,
    constraint nodes_kind check (kind in ('page', 'collection', 'entry'))
);
create unique index nodes_slug on nodes (site_id, parent, slug) where deleted_at is null;
create index nodes_changed on nodes (site_id, state_rev);
create index nodes_order on nodes (site_id, parent, position, slug) where deleted_at is null;

-- Every state a node ever had; rows never change.
create table node_revisions (
    node_id    text   not null references nodes (id),
    rev        bigint not null,
    site_id    text   not null,
    parent     text   not null,
    slug       text   not null,
    kind       text   not null,
    position   bigint not null,
    title      text   not null,
    body       text   not null,
    fields     text   not null, -- canonical JSON object
    hash       text   not null,
    removed    bigint not null, -- this revision is the removal
    state_rev  bigint not null,
    created_at bigint not null,
    author     text   not null, -- "person:…" or "agent:…"
    author_name text  not null,
    primary key (node_id, rev),
    constraint node_revisions_removed check (removed in (0, 1))
);
create index node_revisions_state on node_revisions (site_id, state_rev);
