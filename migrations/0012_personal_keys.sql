-- Keys of people's own MCP clients. One is made in a signed-in session and goes with it; it never decides by itself.
create table personal_keys (
    id           text   not null primary key,
    person_id    text   not null references people (id),
    session_id   text   not null references sessions (id) on delete cascade,
    session_key  text   not null, -- the person's when it was made: whatever ends their sessions ends it too
    name         text   not null, -- which client it is for, in the person's words
    secret_hash  text   not null,
    created_at   bigint not null,
    expires_at   bigint not null  -- the latest end of the session
);
create index personal_keys_person on personal_keys (person_id);
create index personal_keys_session on personal_keys (session_id);
