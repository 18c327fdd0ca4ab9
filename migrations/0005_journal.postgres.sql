-- Differs by necessity: trigger bodies have no common spelling.
create function journal_append_only() returns trigger language plpgsql as $$ begin raise exception 'the journal is append-only'; end $$;
create trigger journal_no_change before update or delete or truncate on journal for each statement execute function journal_append_only();
