-- Who made a key: where another person has to approve, they count as asking with it. Empty for the operator's command line.
alter table agent_keys add column made_by text;
