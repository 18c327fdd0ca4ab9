//! Addresses with a query: a view of a list can be linked, reloaded and gone back to.

use cloudhal_domain::{
    link,
    view::{InboxQuery, Tab},
};
use leptos_router::params::ParamsMap;

/// A path with those of the pairs that have a value.
pub fn with_query(path: &str, pairs: &[(&str, Option<&str>)]) -> String {
    let mut out = path.to_string();
    let mut joint = '?';
    for (name, value) in pairs {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            out.push(joint);
            out.push_str(name);
            out.push('=');
            escape(value, &mut out);
            joint = '&';
        }
    }
    out
}

fn escape(value: &str, out: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
}

/// The queue as the address asks for it; what makes no sense there is as if it were not said.
pub fn read_inbox(map: &ParamsMap) -> InboxQuery {
    let text = |name| map.get(name).filter(|v: &String| !v.trim().is_empty());
    InboxQuery {
        tab: text("tab")
            .and_then(|t| Tab::from_text(&t))
            .unwrap_or_default(),
        site: text("site"),
        tool: text("tool"),
        agent: text("agent"),
        text: text("text"),
        cursor: text("cursor"),
    }
}

/// The address of a queue, on a page of the desk.
pub fn inbox(path: &str, query: &InboxQuery) -> String {
    let tab = (query.tab != Tab::default()).then(|| query.tab.as_str());
    with_query(
        path,
        &[
            ("tab", tab),
            ("site", query.site.as_deref()),
            ("tool", query.tool.as_deref()),
            ("agent", query.agent.as_deref()),
            ("text", query.text.as_deref()),
            ("cursor", query.cursor.as_deref()),
        ],
    )
}

/// The queue of one agent, from anywhere.
pub fn inbox_of_agent(agent: &str) -> String {
    with_query(
        link::APPROVALS,
        &[("tab", Some("all")), ("agent", Some(agent))],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_in_the_address() {
        let plain = InboxQuery::default();
        assert_eq!(inbox("/approvals", &plain), "/approvals");
        let query = InboxQuery {
            tab: Tab::All,
            text: Some("a&b=c d".into()),
            ..plain
        };
        assert_eq!(
            inbox("/approvals", &query),
            "/approvals?tab=all&text=a%26b%3Dc%20d"
        );
    }
}
