-- Append-only, hash-chained: one chain a site, one for the workspace.
create table journal (
    chain       text   not null, -- a site's id, or 'workspace'
    seq         bigint not null,
    at          bigint not null,
    kind        text   not null,
    actor       text   not null,
    actor_name  text   not null,
    approval_id text,
    body        text   not null, -- canonical JSON
    prev_hash   text   not null,
    hash        text   not null,
    primary key (chain, seq)
);
create index journal_approval on journal (approval_id) where approval_id is not null;
create index journal_time on journal (at);

-- What others wait for: hints that something changed, written in the transaction that changed it, swept after an hour.
create table events (
    id          text   not null primary key,
    at          bigint not null,
    kind        text   not null,
    site_id     text   not null,
    approval_id text
);
create index events_time on events (at);

-- Effects outside this database, written with the approval that allows them and delivered by idempotency key.
create table outbox (
    id              text   not null primary key,
    kind            text   not null,
    idempotency_key text   not null,
    site_id         text,
    approval_id     text,
    body            text   not null,
    state           text   not null,
    attempts        bigint not null,
    created_at      bigint not null,
    next_at         bigint not null,
    leased_until    bigint,
    ended_at        bigint,
    last_error      text,
    constraint outbox_state check (state in ('waiting', 'delivered', 'given_up', 'unknown'))
);
create unique index outbox_key on outbox (kind, idempotency_key);
create index outbox_due on outbox (next_at) where state = 'waiting';
