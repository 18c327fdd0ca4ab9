//! The census of cases: what went wrong in public for others, and which test holds it here. `tests/data/cases.json` says for
//! each id in our own words what must not happen, and names the tests, which name the id; what cannot be held yet says why.

use crate::reach::root;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    /// `file::function`, or `file::title` of a browser test.
    #[serde(default)]
    tests: Vec<String>,
    /// Why there is none, or not for all of it.
    #[serde(default)]
    later: String,
}

/// A case may be added, and none may get lost.
const COUNT: usize = 63;

fn cases() -> BTreeMap<String, Case> {
    serde_json::from_str(include_str!("../data/cases.json")).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A function with what stands above it, or a browser test with its title.
fn source_of(file: &str, name: &str) -> String {
    let text = read(&root().join(file));
    if file.ends_with(".ts") {
        let at = text.find(&format!("test(\"{name}\""));
        let at = at.unwrap_or_else(|| panic!("{file} has no test “{name}”"));
        let end = text[at..].find("\n});").unwrap();
        return text[at..at + end].to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    let starts = |line: &&str| {
        let line = line.trim_start().trim_start_matches("async ");
        line.strip_prefix("fn ")
            .is_some_and(|rest| rest.starts_with(&format!("{name}(")))
    };
    let at = lines.iter().position(starts);
    let at = at.unwrap_or_else(|| panic!("{file} has no function {name}"));
    let above = lines[..at]
        .iter()
        .rev()
        .take_while(|line| line.trim_start().starts_with(['/', '#']))
        .count();
    let indent = lines[at].len() - lines[at].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let length = lines[at..].iter().position(|line| *line == end).unwrap();
    let source = lines[at - above..=at + length].join("\n");
    let is_run = source.contains("test]")
        || source.contains("#[tokio::test")
        || text.contains(&format!("\n    {name},\n"));
    assert!(is_run, "{file}: {name} is no test");
    source
}

/// `C01`, where it stands as a word, or begins the name of a test, `c01_…`.
fn ids(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '+');
    words
        .filter_map(|word| match word.split_once('_') {
            Some((start, _)) => start.strip_prefix('c'),
            None => word.strip_prefix('C'),
        })
        .filter(|number| number.len() == 2 && number.bytes().all(|b| b.is_ascii_digit()))
        .map(|number| format!("C{number}"))
        .collect()
}

#[test]
fn every_case_is_held_by_a_test_that_names_it() {
    let cases = cases();
    assert_eq!(cases.len(), COUNT);
    for (id, Case { case, tests, later }) in &cases {
        assert_eq!(ids(id), [id.clone()].into(), "{id} is no id");
        assert!(case.len() > 20 && case.ends_with('.'), "{id}: {case}");
        assert!(
            !tests.is_empty() || !later.is_empty(),
            "{id} is held by nothing"
        );
        for test in tests {
            let (file, name) = test.split_once("::").unwrap();
            let source = source_of(file, name);
            assert!(
                ids(&source).contains(id),
                "{file}: {name} does not name {id}"
            );
        }
    }
}

#[test]
fn every_case_that_a_test_names_is_one() {
    let known: BTreeSet<String> = cases().into_keys().collect();
    let mut files = Vec::new();
    for folder in [
        "domain/src",
        "engine/src",
        "engine/tests",
        "app/src",
        "server/src",
        "server/tests/it",
        "end2end/tests",
    ] {
        collect(&root().join(folder), &mut files);
    }
    let mut seen = BTreeSet::new();
    for file in files {
        let named = ids(&read(&file));
        let unknown: Vec<&String> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{} names {unknown:?}", file.display());
        seen.extend(named);
    }
    assert!(seen.len() > COUNT / 2, "the scan found {seen:?}");
}

pub fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_source = path.extension().is_some_and(|e| e == "rs" || e == "ts");
        if path.is_dir() {
            collect(&path, into);
        } else if is_source {
            into.push(path);
        }
    }
}
