-- [ pending ] ──► [ approved ] ──► [ redeemed ]     with a receipt, in one transaction with the effect
--    │  │             │
--    │  └► [ denied ] │
--    ├────────────────┼──► [ voided ]
--    ├────────────────┼──► [ expired ]              stored by the next writer or the sweeper; readers compute it
--    └────────────────┴──► [ cancelled ]
create table approvals (
    id           text   not null primary key,
    site_id      text   not null references sites (id),
    scope_kind   text   not null, -- whose state it is bound to
    scope_id     text   not null,
    tool         text   not null,
    tool_version text   not null,
    arguments    text   not null, -- canonical JSON: exactly what will run
    args_hash    text   not null,
    state_hash   text   not null, -- what the person looks at
    state_rev    bigint not null,
    caller_kind  text   not null,
    caller_id    text   not null,
    caller_name  text   not null,
    key_id       text,            -- the key that asked, for the record; a rotated key still redeems
    surface      text   not null,
    conversation text,
    reason       text,            -- the agent's own words; never hashed
    sentence     text   not null,
    risk         text   not null,
    card         text   not null, -- canonical JSON, kept as evidence
    seen_digest  text   not null,
    epoch        bigint not null,
    status       text   not null,
    requested_at bigint not null,
    expires_at   bigint not null,
    changed_at   bigint,          -- when it left pending, and then each later step
    void_cause   text,
    receipt_id   text,
    constraint approvals_status_known check (status in ('pending', 'approved', 'denied', 'expired', 'voided', 'cancelled', 'redeemed')),
    constraint approvals_scope_known check (scope_kind in ('site', 'invoice')),
    constraint approvals_caller_known check (caller_kind in ('agent', 'person')),
    constraint approvals_surface_known check (surface in ('direct', 'assistant', 'mcp', 'http', 'stdio')),
    constraint approvals_pending_fresh check ((status = 'pending') = (changed_at is null)),
    constraint approvals_voided_whole check ((status = 'voided') = (void_cause is not null)),
    constraint approvals_redeemed_whole check ((status = 'redeemed') = (receipt_id is not null))
);
-- One waiting request per call: an index decides, not a check (DESIGN §4, rule 7).
create unique index approvals_one_open on approvals (scope_kind, scope_id, site_id, caller_kind, caller_id, surface, tool, tool_version, args_hash, state_hash)
    where status in ('pending', 'approved');
create index approvals_open_by_site on approvals (site_id, status) where status in ('pending', 'approved');
create index approvals_open_by_caller on approvals (caller_kind, caller_id, status) where status in ('pending', 'approved');
create index approvals_open_by_expiry on approvals (expires_at, id) where status in ('pending', 'approved');
create index approvals_history on approvals (site_id, status, requested_at, id);
create index approvals_by_call on approvals (site_id, tool, args_hash, requested_at);

-- Several decisions an approval, one a person.
create table decisions (
    id          text   not null primary key,
    approval_id text   not null references approvals (id),
    person_id   text   not null references people (id),
    person_name text   not null,
    verdict     text   not null,
    via         text   not null,
    seen_digest text   not null,
    reason      text,
    at          bigint not null,
    signature   text   not null, -- over all of this and of the approval, with a key that is not in this database
    constraint decisions_verdict_known check (verdict in ('approve', 'deny')),
    constraint decisions_via_known check (via in ('session', 'client_elicitation'))
);
create unique index decisions_one_each on decisions (approval_id, person_id);

create table receipts (
    id          text   not null primary key,
    approval_id text   not null references approvals (id),
    outcome     text   not null,
    result      text,  -- canonical JSON, for a repeat by the same caller
    error       text,  -- canonical JSON of the refusal
    at          bigint not null,
    constraint receipts_outcome_known check (outcome in ('succeeded', 'failed', 'unknown'))
);
create unique index receipts_one_each on receipts (approval_id);

-- The public halves of the keys that nodes sign decisions with; each has its entry in the journal.
create table signing_keys (
    id         text   not null primary key,
    public_key text   not null,
    created_at bigint not null
);
