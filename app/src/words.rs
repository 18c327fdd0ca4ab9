//! What the Studio says, in one place: short sentences, no codes, no blame.

use cloudhal_domain::{
    approval::{Status, VoidCause},
    code::Code,
    policy::{Missing, Rule},
    policy_form::UNITS,
    role::Role,
    view::{Needs, NodeStatus, Tab},
    webhook::{self, Delivery, DeliveryStatus},
};

/// Presets for the reason of a no; it goes back to the agent.
pub const DENY_PRESETS: [&str; 5] = [
    "Not now. Ask again later.",
    "Please check the wording first.",
    "This is the wrong page.",
    "Too much at once. Ask in smaller steps.",
    "Talk to me before you try this again.",
];

/// Tools that a person may be asked about: those that always wait, then those that a site's policy can let wait.
pub const TOOLS: [(&str, &str); 6] = [
    ("publish", "Publish"),
    ("rollback", "Roll back"),
    ("delete", "Delete"),
    ("node-create", "Add a page"),
    ("node-update", "Change a page"),
    ("node-move", "Move a page"),
];

/// A tool as a title says it; ids are for machines.
pub fn tool(id: &str) -> &str {
    TOOLS
        .iter()
        .find(|(tool, _)| *tool == id)
        .map_or(id, |(_, words)| words)
}

/// The verb on the button, so that the button says what it does.
pub fn approve(tool: &str) -> &'static str {
    match tool {
        "publish" => "Approve publishing",
        "rollback" => "Approve rollback",
        "delete" => "Approve deletion",
        "node-create" => "Approve the new page",
        "node-update" => "Approve the change",
        "node-move" => "Approve the move",
        _ => "Approve",
    }
}

pub fn tab(tab: Tab) -> &'static str {
    match tab {
        Tab::Waiting => "Waiting",
        Tab::Approved => "Approved",
        Tab::Done => "Done",
        Tab::Denied => "Denied",
        Tab::Voided => "Voided",
        Tab::Expired => "Expired",
        Tab::All => "All",
    }
}

/// A status as a person reads it, with its symbol and its colour.
#[derive(Clone, Copy)]
pub struct Look {
    pub word: &'static str,
    pub icon: &'static str,
    pub tone: &'static str,
}

pub fn status(status: Status, outcome: Option<&str>) -> Look {
    let (word, icon, tone) = match (status, outcome) {
        (Status::Pending, _) => ("Waiting", "wait", "wait"),
        (Status::Approved, _) => ("Approved, not yet run", "yes", "yes"),
        (Status::Denied, _) => ("Denied", "no", "no"),
        (Status::Expired, _) => ("Expired", "late", "void"),
        (Status::Voided, _) => ("Voided", "void", "void"),
        (Status::Cancelled, _) => ("Withdrawn", "back", "void"),
        (Status::Redeemed, Some("failed")) => ("Approved, then failed", "warn", "no"),
        (Status::Redeemed, Some("unknown")) => ("Outcome unknown", "warn", "wait"),
        (Status::Redeemed, _) => ("Approved and done", "done", "yes"),
    };
    Look { word, icon, tone }
}

/// What became of it, for the headline of a record that is closed.
pub fn status_sentence(status: Status, outcome: Option<&str>) -> &'static str {
    match (status, outcome) {
        (Status::Pending, _) => "It waits for a decision.",
        (Status::Approved, _) => {
            "Approved. The agent has not repeated its call yet; it may run this once."
        }
        (Status::Denied, _) => "Denied. Nothing was changed.",
        (Status::Expired, _) => "Its time ran out. Nothing was changed.",
        (Status::Voided, _) => "This request no longer holds. Nothing was changed.",
        (Status::Cancelled, _) => "The agent withdrew this request. Nothing was changed.",
        (Status::Redeemed, Some("failed")) => {
            "It was approved and tried, and it failed. Nothing was changed."
        }
        (Status::Redeemed, Some("unknown")) => {
            "It was approved and tried, and nobody can tell yet whether it happened."
        }
        (Status::Redeemed, _) => "Approved and done.",
    }
}

pub fn void_cause(cause: VoidCause) -> &'static str {
    match cause {
        VoidCause::StateChanged => "The site changed after this was asked. Here is what moved.",
        VoidCause::ToolChanged => {
            "The tool behind this request was updated, so what you see may not be what would run."
        }
        VoidCause::AccessLost => {
            "The agent, or the person who answers for it, lost access to this site."
        }
        VoidCause::Restored => "The database was restored from a backup after this was asked.",
    }
}

pub fn node_status(status: NodeStatus) -> Look {
    let (word, icon, tone) = match status {
        NodeStatus::Live => ("Live", "dot", "quiet"),
        NodeStatus::New => ("New", "plus", "yes"),
        NodeStatus::Edited => ("Edited", "pen", "accent"),
    };
    Look { word, icon, tone }
}

pub fn role(role: Role) -> &'static str {
    match role {
        Role::Viewer => "You can look",
        Role::Editor => "You can edit",
        Role::Approver => "You can decide",
        Role::Owner => "You own it",
    }
}

/// A role by its name.
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Viewer => "Viewer",
        Role::Editor => "Editor",
        Role::Approver => "Approver",
        Role::Owner => "Owner",
    }
}

/// When a key ends: the form's values and their words.
pub fn key_ends() -> Vec<(String, String)> {
    let ends = [
        ("", "Never"),
        ("30", "In 30 days"),
        ("90", "In 90 days"),
        ("365", "In a year"),
    ];
    ends.map(|(days, word)| (days.to_owned(), word.to_owned()))
        .into()
}

/// What a gated tool does, as the head of its rule.
pub fn act(tool: &str) -> &str {
    match tool {
        "publish" => "Publishing",
        "rollback" => "Rolling back",
        "delete" => "Deleting",
        "issue-invoice" => "Issuing an invoice",
        "delete-invoice" => "Deleting an invoice",
        "node-create" => "Adding a page to the draft",
        "node-update" => "Changing a page of the draft",
        "node-move" => "Moving a page of the draft",
        other => other,
    }
}

/// A rule in plain sentences: "Two people must approve, somebody from legal among them."
pub fn rule(rule: &Rule) -> String {
    const NUMBERS: [&str; 11] = [
        "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten",
    ];
    let number = NUMBERS
        .get(rule.approvers as usize)
        .map_or_else(|| rule.approvers.to_string(), |word| (*word).to_owned());
    let people = if rule.approvers == 1 {
        "person"
    } else {
        "people"
    };
    let mut said = format!("{number} {people} must approve");
    if !rule.groups.is_empty() {
        let groups: Vec<String> = rule
            .groups
            .iter()
            .map(|g| format!("somebody from {g}"))
            .collect();
        said += &format!(", {} among them", groups.join(" and "));
    }
    said += ".";
    if rule.require_distinct_approver {
        said += " The person whose agent asks does not count.";
    }
    if let Some(seconds) = rule.lifetime_seconds {
        said += &format!(" A request holds for {}.", length(seconds));
    }
    if rule.denial_cool_down_seconds > 0 {
        let time = length(rule.denial_cool_down_seconds);
        said += &format!(" After a denial the same call is refused for {time}.");
    }
    if rule.studio_only {
        said += " It is decided in the Studio alone.";
    }
    said
}

/// "2 hours", "90 seconds": in the longest unit that it is a whole number of.
fn length(seconds: u64) -> String {
    let unit = UNITS.iter().find(|(_, size)| seconds.is_multiple_of(*size));
    let (name, size) = unit.copied().unwrap_or(("seconds", 1));
    let one = name.trim_end_matches('s');
    count((seconds / size) as i64, one, name)
}

/// How a notice wants to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Calm,
    Bad,
}

impl Tone {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Calm => "calm",
            Self::Bad => "bad",
        }
    }
}

/// What a form's way back says (`?notice=<code>`). A code that is not known here still says that something was refused.
pub fn notice(code: &str) -> (Tone, &'static str) {
    use Tone::{Bad, Calm, Good};
    match code {
        "approved" => (Good, "Approved. The agent may now run exactly this, once."),
        "denied" => (Good, "Denied. Nothing was changed."),
        "bulk_denied" | "denied_all" => (Good, "Denied. Nothing was changed on any of them."),
        "denied_some" => (
            Calm,
            "Some were denied. The others were decided by someone else first; they show below how.",
        ),
        "published" => (Good, "Published. The new version is live."),
        "rolled_back" => (Good, "Rolled back. The draft was left as it is."),
        "deleted" => (Good, "Deleted."),
        "nothing_to_publish" => (
            Calm,
            "There is nothing to publish: the draft equals what is live.",
        ),
        "already_decided" => (
            Calm,
            "Someone was faster: this was decided already. Here is how it ended.",
        ),
        "stale_view" => (
            Calm,
            "The request changed while you were reading. Nothing was decided. Please read it again.",
        ),
        "approval_voided" => (
            Calm,
            "The site changed while you were reading, so nothing was decided.",
        ),
        "approval_expired" => (
            Calm,
            "Its time ran out before the decision arrived. Nothing was changed.",
        ),
        "approval_cancelled" => (
            Calm,
            "The agent withdrew this before the decision arrived. Nothing was changed.",
        ),
        "confirm_needed" => (
            Calm,
            "This cannot be undone. Type the site's name exactly as shown, then approve again.",
        ),
        "conflict" => (
            Calm,
            "The site changed since this page was opened, so nothing was done. Please look again.",
        ),
        "saved" => (Good, "Saved."),
        "own_key_ended" => (Good, "Ended. The next call with that key is refused."),
        "key_revoked" => (Good, "Revoked. The next call with that key is refused."),
        "disabled" => (Good, "Disabled. It can be enabled again."),
        "enabled" => (Good, "Enabled."),
        "member_added" => (Good, "Added to this site."),
        "put_back" => (Good, "It works on this site again."),
        "member_removed" => (Good, "Taken off this site."),
        "policy_saved" => (Good, "The policy is saved and holds at once."),
        "webhook_arrived" => (Good, "It arrived: the receiver took it."),
        "webhook_on_its_way" => (
            Calm,
            "It is on its way. Load this page again to see under Webhooks how it went.",
        ),
        "webhook_failed" => (
            Bad,
            "It did not arrive. It is tried again by itself; under Webhooks, the latest deliveries say why.",
        ),
        "webhook_gave_up" => (
            Bad,
            "It did not arrive and is not tried again; under Webhooks, the latest deliveries say why.",
        ),
        "webhook_deleted" => (
            Good,
            "Deleted. Nothing is told there any more, and what waited for it is not sent.",
        ),
        "nothing_selected" => (Calm, "No request was selected, so nothing was denied."),
        "forbidden" => (
            Bad,
            "Your role on this site does not allow that. Nothing was changed.",
        ),
        "sign_in_failed" => (
            Bad,
            "That e-mail and password do not go together. Please try again.",
        ),
        "link_spent" => (
            Bad,
            "This sign-in link was used already or is too old. Ask for a new one.",
        ),
        "password_too_short" => (Bad, "The password needs at least 10 characters."),
        "password_too_long" => (Bad, "The password is too long."),
        "email_taken" => (Bad, "There is already somebody with that e-mail."),
        "invalid_arguments" => (
            Bad,
            "Something in the form cannot be right. Please check it.",
        ),
        "signed_out" => (Calm, "You are signed out."),
        "rate_limited" => (Bad, "Too many tries. Please wait a minute."),
        "cross_origin" => (
            Bad,
            "That did not come from this page, so nothing was done.",
        ),
        "not_found" => (Bad, "That is not there any more."),
        "unavailable" => (
            Bad,
            "Cloudhal is busy right now. Nothing was changed. Please try again.",
        ),
        _ => (Bad, "That did not work, and nothing was changed."),
    }
}

/// A whole page's no: title and one sentence of what to do.
pub fn trouble(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::NotFound | Code::ApprovalNotFound => (
            "There is nothing here for you",
            "The link may be wrong, or what it names belongs to somebody else. Maybe another account of yours can see it.",
        ),
        Code::Unauthorized => (
            "You are signed out",
            "Sign in again and you are back where you were. Whatever you typed is kept.",
        ),
        Code::Forbidden => (
            "Not with your role",
            "You may see this site, but this part of it is for others. An owner can change that.",
        ),
        Code::StaleView => (
            "This is not what was asked",
            "What is stored is not what the request is bound to, so it is not shown and cannot be approved. Nothing was changed. Ask the operator to run `cloudhal verify`.",
        ),
        Code::Unavailable | Code::RateLimited => (
            "Cloudhal cannot answer right now",
            "Nothing was lost and nothing was changed. Try again in a moment.",
        ),
        _ => (
            "Something went wrong on our side",
            "Nothing was changed. Try again; if it stays, the log knows more.",
        ),
    }
}

/// "1 page", "3 pages".
pub fn count(n: i64, one: &str, many: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{} {many}", digits(n))
    }
}

/// What a receiver is told of, as an owner of the site reads it.
pub fn event(topic: &str) -> &str {
    match topic {
        "approval.requested" => "A request waits",
        "approval.decided" => "A request was decided",
        "approval.voided" => "A request no longer holds",
        "approval.expired" => "A request ran out of time",
        "approval.executed" => "An approved call ran",
        webhook::PING => "A test",
        other => other,
    }
}

/// How far a message got.
pub fn delivery(delivery: &Delivery) -> Look {
    let (word, icon, tone) = match (delivery.status, &delivery.last_error) {
        (DeliveryStatus::Delivered, _) => ("Delivered", "done", "yes"),
        (DeliveryStatus::GaveUp, _) => ("Given up", "warn", "no"),
        (DeliveryStatus::Waiting, None) => ("On its way", "wait", "quiet"),
        (DeliveryStatus::Waiting, Some(_)) => ("Is tried again", "wait", "wait"),
    };
    Look { word, icon, tone }
}

/// "Still needed: 2 more people, and somebody of the group “legal”."
pub fn needed(missing: &Missing) -> String {
    let people = match missing.approvers {
        0 => None,
        n => Some(count(i64::from(n), "more person", "more people")),
    };
    let groups = missing
        .groups
        .iter()
        .map(|group| format!("somebody of the group “{group}”"));
    let all: Vec<String> = people.into_iter().chain(groups).collect();
    if all.is_empty() {
        return "Everybody who is needed has approved; one more click completes it.".into();
    }
    format!("Still needed: {}.", all.join(", and "))
}

/// What the person who looks has to do with it.
pub fn own_part(needs: &Needs) -> Option<&'static str> {
    if needs.own {
        return Some(
            "It is your own agent that asks, and this site wants somebody else to approve. You can deny it.",
        );
    }
    (needs.approved && !needs.missing.is_nothing())
        .then_some("You approved this. It waits for the others; until then you can still deny it.")
}

/// Thousands apart: 12,480.
pub fn digits(n: i64) -> String {
    let plain = n.unsigned_abs().to_string();
    let mut out = String::new();
    for (i, c) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if n < 0 { format!("−{out}") } else { out }
}

/// "Ada Osei" → "AO", for the small round picture.
pub fn initials(name: &str) -> String {
    let mut words = name
        .split(|c: char| c.is_whitespace() || c == '-' || c == '_')
        .filter_map(|word| word.chars().find(|c| c.is_alphanumeric()));
    let first = words.next();
    first
        .into_iter()
        .chain(words.next())
        .flat_map(char::to_uppercase)
        .collect()
}

/// The line that connects an agent; the key is typed in by the person.
pub fn connect_line(mcp_url: &str) -> String {
    format!(
        "claude mcp add --transport http cloudhal {mcp_url} --header \"Authorization: Bearer YOUR_KEY\""
    )
}

/// The same for a client on the machine where the database is.
pub fn here_line() -> String {
    "claude mcp add cloudhal -- cloudhal mcp".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(digits(0), "0");
        assert_eq!(digits(999), "999");
        assert_eq!(digits(12480), "12,480");
        assert_eq!(digits(-1234567), "−1,234,567");
        assert_eq!(count(1, "page", "pages"), "1 page");
    }

    #[test]
    fn initials_take_the_first_two_words() {
        assert_eq!(initials("Ada Osei"), "AO");
        assert_eq!(initials("copy-editor"), "CE");
        assert_eq!(initials("  "), "");
    }
}
