-- An immutable published state of a site.
create table versions (
    site_id     text   not null references sites (id),
    version     bigint not null,
    title       text   not null,
    description text   not null,
    node_count  bigint not null,
    added       bigint not null,
    edited      bigint not null,
    removed     bigint not null,
    state_rev   bigint not null, -- the draft's counter when it was published
    created_at  bigint not null,
    author      text   not null,
    author_name text   not null,
    approval_id text,
    primary key (site_id, version)
);

-- Which revision of a node is in which versions: from one version up to, not including, another. A publish writes only what changed.
create table published (
    site_id      text   not null,
    node_id      text   not null,
    rev          bigint not null,
    parent       text   not null,
    slug         text   not null,
    kind         text   not null,
    position     bigint not null,
    title        text   not null,
    from_version bigint not null,
    to_version   bigint,
    primary key (node_id, from_version),
    constraint published_order check (to_version is null or to_version > from_version)
);
create unique index published_current on published (site_id, node_id) where to_version is null;
create index published_path on published (site_id, parent, slug, from_version);
create index published_from on published (site_id, from_version);
create index published_to on published (site_id, to_version) where to_version is not null;
