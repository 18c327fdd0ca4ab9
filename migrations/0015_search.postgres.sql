create table node_words (
    node_id text     not null primary key references nodes (id),
    site_id text     not null,
    rev     bigint   not null, -- the revision whose words these are
    words   tsvector not null  -- A: the title; D: the text
);
create index node_words_words on node_words using gin (words);
create index node_words_site on node_words (site_id);
