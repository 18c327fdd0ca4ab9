-- One row: what this database is. The epoch moves when a backup is brought back, so that no older approval redeems.
create table instance (
    id         bigint not null primary key,
    epoch      bigint not null,
    created_at bigint not null,
    constraint instance_single check (id = 1)
);

create table people (
    id              text   not null primary key,
    email           text   not null,
    email_key       text   not null, -- lower case; what a sign-in looks up
    name            text   not null,
    password_hash   text,            -- argon2id, PHC string
    session_key     text   not null, -- a new one ends all sessions
    workspace_owner bigint not null,
    created_at      bigint not null,
    disabled_at     bigint,
    constraint people_owner_flag check (workspace_owner in (0, 1))
);
create unique index people_email on people (email_key);

-- Sign-in and set-up links: spent by a POST, never by a GET. Only the digest of the token is kept.
create table sign_in_links (
    token_hash text   not null primary key,
    purpose    text   not null,
    person_id  text   references people (id),
    created_at bigint not null,
    expires_at bigint not null,
    used_at    bigint,
    constraint sign_in_links_purpose check (purpose in ('sign_in', 'set_up')),
    constraint sign_in_links_whole check ((purpose = 'sign_in') = (person_id is not null))
);

create table sessions (
    id         text   not null primary key, -- digest of the cookie's value
    data       text   not null,
    expires_at bigint not null
);
create index sessions_expiry on sessions (expires_at);
