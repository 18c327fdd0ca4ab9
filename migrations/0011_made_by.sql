-- Who made a key: where another person has to approve, they count as asking with it. Empty for the operator's command line.
alter table agent_keys add column made_by text;
-- Who made a link, as the journal names them: it ends with their right to make any.
alter table sign_in_links add column made_by text;
