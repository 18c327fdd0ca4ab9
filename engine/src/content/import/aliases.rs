//! The other addresses of an imported page: what its links were written for is found.

use crate::content::slug;
use serde_json::{Map, Value};

/// A page that was served under a `url` of its own is found there again as an alias; the tree alone decides its path.
pub(super) fn remember_url(fields: &mut Map<String, Value>, path: &[String]) {
    let Some(Value::String(url)) = fields.remove("url") else {
        return;
    };
    if url.trim_matches('/') == path.join("/") {
        return;
    }
    add_alias(fields, url);
}

/// Links go from file to file: a page whose slug is not its file's name is found under that name as well.
pub(super) fn remember_file(fields: &mut Map<String, Value>, source_name: &str, path: &[String]) {
    let named = slug::slugify(source_name);
    let Some((slug, folder)) = path.split_last() else {
        return;
    };
    if named.is_empty() || named == *slug {
        return;
    }
    let file: Vec<&str> = folder.iter().map(String::as_str).chain([&*named]).collect();
    add_alias(fields, format!("/{}/", file.join("/")));
}

fn add_alias(fields: &mut Map<String, Value>, alias: String) {
    if let Value::Array(aliases) = fields
        .entry("aliases")
        .or_insert_with(|| Value::Array(Vec::new()))
    {
        aliases.push(Value::String(alias));
    }
}
