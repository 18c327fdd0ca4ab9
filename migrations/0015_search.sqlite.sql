create table node_words (
    id      integer not null primary key, -- the row of node_index
    node_id text    not null unique references nodes (id),
    site_id text    not null,
    rev     bigint  not null              -- the revision whose words these are
);
create virtual table node_index using fts5 (site, title, text, tokenize = 'ascii', content = '', contentless_delete = 1);
