//! What is broken, and who has to notice.
//!
//! Guards are doubled on purpose: before the redeeming UPDATE decides, the record was read and compared. Each half is broken by
//! itself here, so that neither lives on the other; what only an UPDATE can show is shown by tests that go to the statement.

/// One guard taken away.
pub struct Mutation {
    pub name: &'static str,
    /// For the reader of the table.
    pub what: &'static str,
    pub changes: &'static [Change],
    /// Tests of the engine's suite, `module::function`, of which one has to turn red.
    pub tests: &'static [&'static str],
    /// Words that the red test has to say, where one test stands for many guards; else empty.
    pub says: &'static str,
}

/// A text that stands in a file exactly once, and what stands there instead.
pub struct Change {
    pub file: &'static str,
    pub text: &'static str,
    pub instead: &'static str,
}

const STORE: &str = "engine/src/store/approvals.rs";
const SITES_STORE: &str = "engine/src/store/sites.rs";
const WRITER: &str = "engine/src/store/writer.rs";
const REDEEMING: &str = "engine/src/approvals/redeeming.rs";
const DECIDING: &str = "engine/src/approvals/deciding.rs";
const CALLERS: &str = "engine/src/callers.rs";
const PERSONAL_KEYS_STORE: &str = "engine/src/store/personal_keys.rs";
const KEEPING: &str = "engine/src/agents/keeping.rs";
const APPROVALS: &str = "engine/src/approvals.rs";
const SIGNING: &str = "engine/src/signing.rs";
const SITES: &str = "engine/src/sites.rs";
const GATE: &str = "engine/src/gate.rs";
const CHANGES: &str = "engine/src/changes.rs";
const POLICIES: &str = "engine/src/policies.rs";

const BINDINGS: &[&str] = &["guard::the_redeeming_update_asks_for_every_binding"];
const DECIDES: &[&str] = &["guard::the_deciding_update_asks_for_everything"];

macro_rules! mutation {
    ($name:literal, $what:literal, $file:expr, $text:literal => $instead:literal, $tests:expr, $says:literal) => {
        Mutation {
            name: $name,
            what: $what,
            changes: &[Change {
                file: $file,
                text: $text,
                instead: $instead,
            }],
            tests: $tests,
            says: $says,
        }
    };
}

pub const MUTATIONS: &[Mutation] = &[
    // The redeeming UPDATE, a condition at a time.
    mutation!(
        "redeem-status", "the redeeming UPDATE takes any status", STORE,
        "and status = 'approved' and tool = $4" => "and (status = 'approved' or 1 = 1) and tool = $4",
        &["guard::the_redeeming_update_takes_only_what_is_approved"], "pending"
    ),
    mutation!(
        "redeem-tool", "… any tool", STORE,
        "tool = $4 and tool_version = $5 and" => "(tool = $4 or 1 = 1) and tool_version = $5 and",
        BINDINGS, "another tool"
    ),
    mutation!(
        "redeem-tool-version", "… any version of the tool", STORE,
        "tool_version = $5 and args_hash = $6" => "(tool_version = $5 or 1 = 1) and args_hash = $6",
        BINDINGS, "another tool version"
    ),
    mutation!(
        "redeem-arguments", "… any arguments", STORE,
        "args_hash = $6 and caller_kind = $7" => "(args_hash = $6 or 1 = 1) and caller_kind = $7",
        BINDINGS, "another arguments"
    ),
    mutation!(
        "redeem-caller-kind", "… an agent or a person", STORE,
        "caller_kind = $7 and caller_id = $8" => "(caller_kind = $7 or 1 = 1) and caller_id = $8",
        BINDINGS, "another caller kind"
    ),
    mutation!(
        "redeem-caller", "… anybody's call", STORE,
        "caller_id = $8 and surface = $9" => "(caller_id = $8 or 1 = 1) and surface = $9",
        BINDINGS, "another caller"
    ),
    mutation!(
        "redeem-surface", "… a call at any door", STORE,
        "and surface = $9\n          and site_id = $10" => "and (surface = $9 or 1 = 1)\n          and site_id = $10",
        BINDINGS, "another surface"
    ),
    mutation!(
        "redeem-site", "… any site", STORE,
        "and site_id = $10 and scope_kind" => "and (site_id = $10 or 1 = 1) and scope_kind",
        BINDINGS, "another site_id"
    ),
    mutation!(
        "redeem-scope-kind", "… what is bound to the state of something else than a site", STORE,
        "and scope_kind = 'site' and scope_id = $10" => "and (scope_kind = 'site' or 1 = 1) and scope_id = $10",
        BINDINGS, "another scope_kind"
    ),
    mutation!(
        "redeem-scope", "… what is bound to the state of another site", STORE,
        "and scope_id = $10 and state_hash = $11" => "and (scope_id = $10 or 1 = 1) and state_hash = $11",
        BINDINGS, "another scope_id"
    ),
    mutation!(
        "redeem-state", "… any state of the site", STORE,
        "and state_hash = $11 and epoch" => "and (state_hash = $11 or 1 = 1) and epoch",
        BINDINGS, "another state"
    ),
    mutation!(
        "redeem-epoch", "… what was asked before a restore", STORE,
        "$11 and epoch = (select epoch from instance)" => "$11 and (epoch = (select epoch from instance) or 1 = 1)",
        BINDINGS, "another epoch"
    ),
    mutation!(
        "redeem-time", "… what ran out", STORE,
        "(select epoch from instance) and expires_at > $1\"" => "(select epoch from instance) and (expires_at > $1 or 1 = 1)\"",
        BINDINGS, "another time"
    ),
    // What is made of its row count.
    mutation!(
        "redeem-count", "the row count of the redeeming UPDATE is not looked at", STORE,
        "        .bind(call.state_hash)\n        .execute(tx.sql())\n        .await?;\n    Ok(done.rows_affected() == 1)"
            => "        .bind(call.state_hash)\n        .execute(tx.sql())\n        .await?;\n    Ok(done.rows_affected() < 2)",
        &["guard::the_redeeming_update_takes_only_what_is_approved"], "pending"
    ),
    mutation!(
        "redeem-verdict", "the effect runs whatever the redeeming UPDATE said", REDEEMING,
        "if !sql::redeem(tx, &id, call, &receipt_id, now).await? {" => "if !sql::redeem(tx, &id, call, &receipt_id, now).await? && false {",
        &["redeeming::what_the_update_does_not_take_runs_nothing"], "it ran"
    ),
    // One transaction, begun by the lock.
    mutation!(
        "lock-dropped", "PostgreSQL: the unit's first statement reads the site and locks nothing", SITES_STORE,
        "        Backend::Postgres => columns!(
            \"update sites set state_rev = state_rev where id = $1 and deleted_at is null returning\",
            concat!(\", \", shared_clock!(), \" as clock\")
        )," => "        Backend::Postgres => columns!(
            \"select\",
            concat!(\", \", shared_clock!(), \" as clock from sites where id = $1 and deleted_at is null\")
        ),",
        &["many_nodes::whoever_locks_second_sees_what_the_first_left"], ""
    ),
    mutation!(
        "begin-deferred", "SQLite: a transaction takes the write lock only when it first writes", WRITER,
        "\"begin immediate\"" => "\"begin deferred\"",
        &["store::a_unit_that_begins_by_reading_has_the_write_lock_all_the_same"], ""
    ),
    mutation!(
        "effect-outside", "the claim is committed before the effect runs", REDEEMING,
        "        let author = self.caller.author();\n        let authority = Authority::Redeemed" => "        let begin = match tx.backend() {
            crate::store::Backend::Sqlite => \"begin immediate\",
            crate::store::Backend::Postgres => \"begin\",
        };
        for sql in [\"commit\", begin] {
            let done = sqlx::query(sql).execute(tx.sql()).await;
            done.map_err(crate::store::StoreError::from)?;
        }
        let author = self.caller.author();\n        let authority = Authority::Redeemed",
        &["redeeming::when_the_machinery_fails_it_stays_approved_and_the_repeat_runs_once"], "redeemed"
    ),
    mutation!(
        "effect-not-undone", "what a refused effect had written stays", WRITER,
        "        self.execute(\"rollback to savepoint part\").await?;\n" => "",
        &["redeeming::an_effect_that_refuses_late_leaves_nothing_but_its_receipt"], ""
    ),
    // What is asked again under the lock.
    mutation!(
        "key-recheck", "the key is not asked for again under the lock", CALLERS,
        "    match good {\n        true => Ok(())," => "    match good || !good {\n        true => Ok(()),",
        &["redeeming::a_revoked_key_does_not_redeem", "redeeming::an_expired_key_does_not_redeem"], ""
    ),
    mutation!(
        "scope-recheck", "the agent's scope is not asked for again under the lock", CALLERS,
        "if reach.may_call == 0 {" => "if false {",
        &["order::the_scope_is_asked_again_when_it_runs", "redeeming::a_disabled_agent_or_owner_does_not_redeem"], ""
    ),
    mutation!(
        "agent-unlocked", "a change of an agent's sites or tools does not wait for a redeem", KEEPING,
        "lock_agent(tx, &row.id).await?;\n            let before" => "let before",
        &["many_nodes::c39_a_narrowed_scope_waits_for_a_redeem"], ""
    ),
    mutation!(
        "draft-rights", "a change of the draft does not ask again under the lock", GATE,
        "callers::expect_may_call(tx, &caller, &locked, tool).await?;" => "",
        &["redeeming::a_key_that_ended_since_the_door_looked_changes_nothing"], ""
    ),
    mutation!(
        "request-rights", "a request does not ask again under the lock", APPROVALS,
        "callers::expect_may_call(tx, &self.caller, &site, self.tool).await?;" => "",
        &["redeeming::a_key_that_ended_since_the_door_looked_changes_nothing"], ""
    ),
    mutation!(
        "client-counts-on", "what was approved in a client counts where the Studio decides by now", POLICIES,
        "approvals.filter(|decision| rule.takes(decision.via))" => "approvals.filter(|decision| true || rule.takes(decision.via))",
        &["own_client::c37_what_a_client_approved_does_not_run_where_the_studio_decides_by_now"], ""
    ),
    mutation!(
        "personal-key-unheld", "a personal key is not held while its call runs", PERSONAL_KEYS_STORE,
        "), of \"k, p\");" => "), of \"p\");",
        &["many_nodes::c39_a_session_that_is_being_ended_is_waited_for"], ""
    ),
    mutation!(
        "client-anybodys", "a person's client answers for requests that are not its own", DECIDING,
        "            && approval.surface == door;\n        match own {" => "            && approval.surface == door;\n        match own || !own {",
        &["own_client::a_client_answers_for_its_own_request_alone"], ""
    ),
    mutation!(
        "client-key", "a client whose session ended meanwhile answers for its person", DECIDING,
        "&& !personal_sql::key_is_good(tx, key, now).await?" => "&& false && !personal_sql::key_is_good(tx, key, now).await?",
        &["own_client::c37_a_client_answers_only_where_the_site_lets_it"], ""
    ),
    mutation!(
        "client-not-studio", "a client answers where the site decides in the Studio alone", DECIDING,
        "if !measured.rule.takes(self.decider.via()) {" => "if false && !measured.rule.takes(self.decider.via()) {",
        &["own_client::c37_a_client_answers_only_where_the_site_lets_it"], ""
    ),
    mutation!(
        "another-time", "a changed tool or a restore is not looked for", REDEEMING,
        "if let Some(cause) = self.another_time(&stored) {" => "if let (Some(cause), true) = (self.another_time(&stored), false) {",
        &["voiding::a_changed_tool_voids"], ""
    ),
    mutation!(
        "signatures-unchecked", "decisions are taken as they stand in their rows", REDEEMING,
        "if !signing::all_genuine(" => "if false && !signing::all_genuine(",
        &["tampering::a_row_set_to_approved_by_hand_does_not_redeem", "tampering::an_approved_row_with_anything_changed_does_not_redeem"], ""
    ),
    mutation!(
        "signature-unverified", "a signature is looked for, not verified", SIGNING,
        "if row.seen_digest != seen.as_str() || !key.verifies(&message(stored, row), &row.signature)"
            => "if row.seen_digest != seen.as_str() || key.verifies(\"\", &message(stored, row))",
        &["tampering::an_approved_row_with_anything_changed_does_not_redeem", "tampering::a_decision_of_another_request_does_not_count"], ""
    ),
    mutation!(
        "record-not-intact", "a record's own digests are not recomputed", STORE,
        "digest::of_arguments(&approval.arguments) == approval.args_hash\n            && seen == approval.seen_digest"
            => "digest::of_arguments(&approval.arguments) != approval.args_hash\n            || seen != approval.seen_digest\n            || seen == approval.seen_digest",
        &["tampering::a_pending_row_with_other_arguments_is_not_decided"], ""
    ),
    mutation!(
        "record-not-intact-deciding", "… not before a decision", DECIDING,
        "if !stored.is_intact() {" => "if false && !stored.is_intact() {",
        &["tampering::a_pending_row_with_other_arguments_is_not_decided"], ""
    ),
    mutation!(
        "policy-not-measured", "the approvals are not measured against the policy again", REDEEMING,
        "if !measured.missing().is_nothing() {" => "if false && !measured.missing().is_nothing() {",
        &["policy::a_policy_made_stricter_holds_at_redeem", "redeeming::an_approver_who_may_no_longer_decide_does_not_count"], ""
    ),
    mutation!(
        "denial-elsewhere", "a denial of the same call at another door does not hold at redeem", REDEEMING,
        "            refuse_denied_since(tx, call, since, cool_down).await?;\n" => "            let _ = since;\n",
        &["policy::a_denial_at_another_door_stands_at_redeem"], ""
    ),
    mutation!(
        "deciders-not-held", "PostgreSQL: an approver's account may change while their approval is spent", REDEEMING,
        "        people_sql::hold_deciders(tx, &id).await?;\n" => "        let _ = people_sql::hold_deciders;\n",
        &["many_nodes::c39_a_right_that_is_being_taken_away_is_waited_for"], ""
    ),
    // Deciding.
    mutation!(
        "decide-site", "the deciding UPDATE takes a request of any site", STORE,
        "where id = $3 and site_id = $4 and status = 'pending'" => "where id = $3 and (site_id = $4 or 1 = 1) and status = 'pending'",
        DECIDES, "site"
    ),
    mutation!(
        "decide-status", "… what is decided already", STORE,
        "site_id = $4 and status = 'pending' and seen" => "site_id = $4 and (status = 'pending' or 1 = 1) and seen",
        DECIDES, "status"
    ),
    mutation!(
        "decide-unseen", "… whatever the person saw", STORE,
        "and seen_digest = $5 and expires_at" => "and (seen_digest = $5 or 1 = 1) and expires_at",
        &["guard::the_deciding_update_asks_for_everything", "deciding::a_digest_of_anything_else_decides_nothing"], "seen digest"
    ),
    mutation!(
        "decide-time", "… what ran out", STORE,
        "and expires_at > $2 and epoch = (select epoch from instance)\"" => "and (expires_at > $2 or 1 = 1) and epoch = (select epoch from instance)\"",
        DECIDES, "time"
    ),
    mutation!(
        "decide-epoch", "… what was asked before a restore", STORE,
        "$2 and epoch = (select epoch from instance)\"" => "$2 and (epoch = (select epoch from instance) or 1 = 1)\"",
        DECIDES, "epoch"
    ),
    mutation!(
        "decide-role", "whoever may look may decide", DECIDING,
        "if !role.may_decide() {" => "if false && !role.may_decide() {",
        &["deciding::who_may_not_decide_does_not"], ""
    ),
    mutation!(
        "decide-verdict", "a decision is kept whatever the deciding UPDATE said", DECIDING,
        "if !sql::decide(tx, &self.site, &self.id, &self.seen, becomes, now).await? {" => "if !sql::decide(tx, &self.site, &self.id, &self.seen, becomes, now).await? && false {",
        &["deciding::a_digest_of_anything_else_decides_nothing", "deciding::the_second_decision_is_told_who_was_first"], ""
    ),
    mutation!(
        "decide-alone", "one person's approval is always enough", DECIDING,
        "if missing.is_nothing() {" => "if missing.is_nothing() || true {",
        &["policy::two_people_are_asked_for_and_two_it_takes", "policy::groups_must_each_be_represented"], ""
    ),
    mutation!(
        "decide-own", "the owner of the asking agent counts where another is asked for", DECIDING,
        "if open && !measured.counts(self.decider.person()) {" => "if false && !measured.counts(self.decider.person()) {",
        &["policy::the_owner_of_the_agent_does_not_count_where_another_is_required"], ""
    ),
    mutation!(
        "picture-unchecked", "what is drawn for a request is not compared with what it is bound to", CHANGES,
        "match content.hash() == side.hash.as_str() {" => "match !content.hash().is_empty() || !side.hash.as_str().is_empty() {",
        &["pictures::a_draft_picture_that_is_not_what_was_bound_is_not_shown", "pictures::a_publish_picture_that_is_not_what_was_bound_is_not_shown"], ""
    ),
    mutation!(
        "policy-over-any", "a policy is set over whichever there is, whatever was read", POLICIES,
        "if only_after.is_some_and(|seen| !seen.contains(&before.digest())) {" => "if only_after.is_some_and(|seen| seen.is_empty()) {",
        &["policy::of_two_who_saw_the_same_policy_one_sets_theirs"], ""
    ),
    // Asking.
    Mutation {
        name: "index-not-unique",
        what: "the index of open requests lets two of one call in",
        changes: &[Change {
            file: "migrations/0006_approvals.sql",
            text: "create unique index approvals_one_open",
            instead: "create index approvals_one_open",
        }],
        tests: &["guard::the_index_lets_one_request_of_a_call_wait"],
        says: "",
    },
    mutation!(
        "index-ignored", "a request that the index refused is said to wait", APPROVALS,
        "if !sql::insert(tx, new).await? {" => "if !sql::insert(tx, new).await? && false {",
        &["guard::what_the_index_did_not_take_is_not_said_to_wait"], ""
    ),
    mutation!(
        "agent-not-locked", "PostgreSQL: what an agent has waiting is counted without its lock", APPROVALS,
        "        sql::lock_caller(tx, key_of(&self.caller)).await?;\n" => "        let _ = sql::lock_caller;\n",
        &["story::a_flood_over_several_sites_stops_at_the_same_cap"], ""
    ),
    mutation!(
        "caps-dropped", "any number of requests may wait", APPROVALS,
        "self.check_caps(tx, now).await?;" => "let _ = Self::check_caps;",
        &["story::an_agent_has_at_most_ten_requests_waiting", "story::a_site_has_at_most_fifty_requests_waiting"], ""
    ),
    // Voiding.
    mutation!(
        "void-dropped", "a change of the site voids nothing", SITES,
        "            approvals_sql::void_open(tx, &self.row.id, VoidCause::StateChanged, self.now).await?\n" => "            Vec::<String>::new()\n",
        &["voiding::every_kind_of_change_voids_every_open_request", "voiding::an_edit_and_its_revert_void_too"], ""
    ),
    mutation!(
        "state-stands-still", "a change that is taken back brings the old state back", SITES,
        "        self.row.state_rev = self.next_state_rev();\n" => "",
        &["state::the_running_state_equals_a_recomputed_one_under_random_edits"], ""
    ),
    // The gate.
    mutation!(
        "gate-caller", "an approval may be used by whoever knows its id", APPROVALS,
        "&& s.approval.caller_id == caller.id() &&" => "&&",
        &["order::unknown_foreign_and_other_doors_ids_answer_alike"], ""
    ),
    mutation!(
        "gate-surface", "… at any door", APPROVALS,
        "&& s.approval.surface == caller.surface())" => ")",
        &["order::unknown_foreign_and_other_doors_ids_answer_alike"], ""
    ),
    mutation!(
        "gate-mismatch", "an approval is not compared with the call", GATE,
        "if !approval.is_of(tool.spec.id, &digest::of_arguments(&arguments)) {" => "if false && !approval.is_of(tool.spec.id, &digest::of_arguments(&arguments)) {",
        &["order::an_approval_is_good_for_its_own_call_only"], ""
    ),
    mutation!(
        "gate-scope", "a redeem does not ask for the key's scope", GATE,
        "    caller.check_scope(tool)?;\n    if approval.standing" => "    if approval.standing",
        &["order::every_record_answers_every_call_in_the_order_of_the_contract"], ""
    ),
    mutation!(
        "gate-denied", "a denial is told like any other state", GATE,
        "(State::Denied { .. }, Some(refusal)) => Err(refusal)," => "(State::Denied { .. }, Some(_)) => Ok(()),",
        &["order::every_record_answers_every_call_in_the_order_of_the_contract"], ""
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use std::{collections::BTreeSet, fs};

    fn read(file: &str) -> String {
        fs::read_to_string(run::root().join(file)).unwrap()
    }

    #[test]
    fn every_text_stands_in_its_file_exactly_once() {
        for Mutation { name, changes, .. } in MUTATIONS {
            for change in *changes {
                let found = read(change.file).matches(change.text).count();
                assert_eq!(found, 1, "{name}: {:?} in {}", change.text, change.file);
                assert_ne!(change.text, change.instead, "{name}");
            }
        }
        let names: BTreeSet<&str> = MUTATIONS.iter().map(|mutation| mutation.name).collect();
        assert_eq!(names.len(), MUTATIONS.len(), "two have one name");
    }

    #[test]
    fn every_test_that_is_named_is_there() {
        for Mutation { name, tests, .. } in MUTATIONS {
            assert!(!tests.is_empty(), "{name}");
            for test in *tests {
                let (module, function) = test.split_once("::").unwrap();
                let source = read(&format!("engine/tests/it/{module}.rs"));
                let listed = source.contains(&format!("\n    {function},\n"));
                assert!(listed, "{name}: {test} is not run on both engines");
            }
        }
    }

    /// Whoever adds a condition to one of the two statements has to show here that it bites.
    #[test]
    fn every_condition_of_the_two_updates_is_broken_once() {
        let store = read(STORE);
        for (start, end) in [
            ("update approvals set status = 'redeemed'", "\";"),
            ("update approvals set status = $1, changed_at = $6", "\","),
        ] {
            let statement = store.split_once(start).unwrap().1;
            let guard = statement.split_once(end).unwrap().0;
            let guard = guard.split_once("where").unwrap().1;
            let conditions: Vec<&str> = guard.split(" and ").map(str::trim).collect();
            assert!(conditions.len() > 5, "{conditions:?}");
            for condition in conditions.into_iter().filter(|c| *c != "id = $3") {
                let condition = condition.trim_start_matches("and ");
                let broken = format!("({condition} or 1 = 1)");
                let shown = MUTATIONS
                    .iter()
                    .flat_map(|mutation| mutation.changes)
                    .any(|change| change.instead.contains(&broken));
                assert!(shown, "no mutation takes away `{condition}`");
            }
        }
    }
}
