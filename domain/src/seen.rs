//! What a form showed of a thing before it was changed, as a short text that rides along with the form: where it is not what
//! there is any more, somebody else was quicker, and the change is refused instead of giving back what they took.

use crate::role::Role;

/// Of what somebody is on a site; no role is no member.
pub fn member(role: Option<Role>, groups: &[String]) -> String {
    let mut groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    groups.sort_unstable();
    format!("{} {}", role.map_or("none", Role::as_str), groups.join(","))
}

/// Of what an agent reaches: ids of sites, and tools, of which none means every one.
pub fn agent<'a>(sites: impl Iterator<Item = &'a str>, tools: &[String]) -> String {
    let mut sites: Vec<&str> = sites.collect();
    let mut tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    sites.sort_unstable();
    tools.sort_unstable();
    format!("{} {}", sites.join(","), tools.join(","))
}
