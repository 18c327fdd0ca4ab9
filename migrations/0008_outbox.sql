-- Where the events of a site are told, and the secret that signs what goes there.
create table webhooks (
    id               text   not null primary key,
    site_id          text   not null references sites (id),
    url              text   not null,
    secret           text   not null, -- readable, since it signs; shown once, and read again only to sign
    old_secret       text,            -- signs as well until its time is up, so that a receiver can change over
    old_secret_until bigint,
    created_at       bigint not null,
    constraint webhooks_old_secret_whole check ((old_secret is null) = (old_secret_until is null))
);
create index webhooks_by_site on webhooks (site_id, created_at, id);

-- The outbox of 0005 was never written to, and knew neither its receiver nor its claim: it is made anew.
drop table outbox;
-- Effects outside the database, written by the transaction that causes them and carried out at least once:
-- [ waiting ] ──► [ delivered ]
--      │  ▲
--      ▼  │ a person asks again
-- [ gave_up ]             [ unknown ]: for effects that may not be repeated, when it cannot be known whether one happened
create table outbox (
    id          text   not null primary key, -- stable over retries: the receiver's key against doing it twice
    kind        text   not null,
    site_id     text   not null references sites (id),
    target      text   not null, -- of a webhook: its id, which may be gone by now
    topic       text   not null,
    approval_id text   references approvals (id),
    body        text   not null, -- canonical JSON
    epoch       bigint not null, -- of another epoch than the instance's: written before a restore, and never delivered
    status      text   not null,
    tries       bigint not null, -- begun; counted by the claim, so that a node that dies in one has used it up
    due_at      bigint not null, -- nobody touches it before: the next try, or the end of a claim's lease
    holder      text,            -- the claim that holds it
    last_error  text,
    created_at  bigint not null,
    finished_at bigint,
    constraint outbox_status_known check (status in ('waiting', 'delivered', 'gave_up', 'unknown')),
    constraint outbox_finished_whole check ((status = 'waiting') = (finished_at is null)),
    constraint outbox_held_waits check (holder is null or status = 'waiting')
);
create index outbox_due on outbox (due_at, id) where status = 'waiting';
create index outbox_by_target on outbox (target, created_at, id);
create index outbox_finished on outbox (finished_at) where status <> 'waiting';
