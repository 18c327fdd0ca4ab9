-- Differs by necessity: trigger bodies have no common spelling.
create trigger journal_no_update before update on journal begin select raise(abort, 'the journal is append-only'); end;
create trigger journal_no_delete before delete on journal begin select raise(abort, 'the journal is append-only'); end;
