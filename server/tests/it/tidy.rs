//! Walls as sentences about absence (guide to style, section 7), read from the sources. A file that breaks one is named.

use crate::reach::root;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

struct Source {
    /// Relative to the root, `engine/src/store.rs`.
    path: String,
    text: String,
}

impl Source {
    /// Without comments and unit tests.
    fn product(&self) -> String {
        let text = self
            .text
            .split("\n#[cfg(test)]\nmod tests {")
            .next()
            .unwrap();
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

fn sources(folder: &str, ending: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let name = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.push(Source {
                    path: name,
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The crates that a manifest depends on, tests left out.
fn dependencies(member: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut tables = vec![manifest.get("dependencies")];
    for target in manifest
        .get("target")
        .and_then(|t| t.as_table())
        .into_iter()
        .flat_map(|t| t.values())
    {
        tables.push(target.get("dependencies"));
    }
    for table in tables.into_iter().flatten() {
        names.extend(table.as_table().unwrap().keys().cloned());
    }
    assert!(names.len() > 1, "{member} depends on {names:?}");
    names
}

/// Whether a word stands in a text as a whole; one that ends in `::` may go on.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let ends = word.ends_with("::") || edge(text[at + word.len()..].chars().next());
        edge(text[..at].chars().next_back()) && ends
    })
}

#[track_caller]
fn nowhere(sources: &[Source], words: &[&str], except: impl Fn(&str) -> bool, wall: &str) {
    assert!(!sources.is_empty(), "{wall}: nothing was read");
    let breaks: Vec<String> = sources
        .iter()
        .filter(|source| !except(&source.path))
        .flat_map(|source| {
            let text = source.product();
            words
                .iter()
                .filter(move |word| names(&text, word))
                .map(move |word| format!("{} names {word}", source.path))
        })
        .collect();
    assert!(breaks.is_empty(), "{wall}:\n{}", breaks.join("\n"));
}

#[test]
fn imports_go_one_way() {
    let ours = |member: &str| -> Vec<String> {
        dependencies(member)
            .into_iter()
            .filter(|name| name.starts_with("cloudhal-"))
            .collect()
    };
    assert!(ours("domain").is_empty());
    assert_eq!(ours("engine"), ["cloudhal-domain"]);
    assert_eq!(ours("app"), ["cloudhal-domain", "cloudhal-engine"]);
    assert_eq!(ours("frontend"), ["cloudhal-app"]);
    assert_eq!(
        ours("server"),
        ["cloudhal-app", "cloudhal-domain", "cloudhal-engine"]
    );
    let app = fs::read_to_string(root().join("app/Cargo.toml")).unwrap();
    let engine = app
        .lines()
        .find(|line| line.starts_with("cloudhal-engine"))
        .unwrap();
    assert!(
        engine.contains("optional = true"),
        "the browser's half must not bring the engine: {engine}"
    );
}

#[test]
fn the_domain_does_no_io() {
    let io = [
        "tokio",
        "sqlx",
        "axum",
        "reqwest",
        "leptos",
        "rmcp",
        "hyper",
        "tower",
        "tracing",
        "getrandom",
        "rand",
    ];
    let found: Vec<String> = dependencies("domain")
        .into_iter()
        .filter(|name| io.contains(&name.as_str()))
        .collect();
    assert!(found.is_empty(), "{found:?}");
    let manifest = fs::read_to_string(root().join("domain/Cargo.toml")).unwrap();
    assert!(
        !manifest.contains("[features]"),
        "the domain has no features"
    );
    nowhere(
        &sources("domain/src", ".rs"),
        &[
            "std::fs",
            "std::net",
            "std::env",
            "std::process",
            "SystemTime",
            "async fn",
            "println",
        ],
        |_| false,
        "the domain does no IO",
    );
}

#[test]
fn the_engine_knows_no_door() {
    let doors = [
        "axum",
        "leptos",
        "leptos_axum",
        "rmcp",
        "tower",
        "hyper",
        "tower_sessions",
        "axum_login",
        "http",
    ];
    let found: Vec<String> = dependencies("engine")
        .into_iter()
        .filter(|name| doors.contains(&name.replace('-', "_").as_str()))
        .collect();
    assert!(found.is_empty(), "{found:?}");
    nowhere(
        &sources("engine/src", ".rs"),
        &["axum", "leptos", "rmcp"],
        |_| false,
        "the engine knows no door",
    );
}

#[test]
fn sql_stays_in_the_store() {
    for (member, has) in [
        ("domain", false),
        ("app", false),
        ("server", false),
        ("frontend", false),
        ("engine", true),
    ] {
        assert_eq!(dependencies(member).contains("sqlx"), has, "{member}");
    }
    let all: Vec<Source> = ["domain", "engine", "app", "frontend", "server", "torture"]
        .iter()
        .flat_map(|member| sources(member, ".rs"))
        .collect();
    let allowed = |path: &str| {
        path.starts_with("engine/src/store/")
            || path == "engine/src/store.rs"
            || path == "engine/tests/it/support/database.rs"
            || path == "torture/src/database.rs"
            || path == "server/tests/it/tidy.rs"
    };
    nowhere(
        &all,
        &["sqlx", "AnyPool"],
        allowed,
        "sqlx is named only in the store",
    );
    let outside: Vec<Source> = ["app/src", "server/src"]
        .iter()
        .flat_map(|folder| sources(folder, ".rs"))
        .collect();
    for source in &outside {
        let text = source.product().to_lowercase();
        for line in text.lines() {
            let selects = line.contains("\"select ") && line.contains(" from ");
            let writes = line.contains("\"insert into ")
                || (line.contains("\"delete from ") && line.contains(" where "))
                || (line.contains("\"update ") && line.contains(" set "));
            assert!(!selects && !writes, "{} holds SQL: {line}", source.path);
        }
    }
}

#[test]
fn mcp_is_spoken_in_one_place() {
    for member in ["domain", "engine", "app", "frontend"] {
        assert!(!dependencies(member).contains("rmcp"), "{member}");
    }
    let allowed = |path: &str| path == "server/src/mcp.rs" || path.starts_with("server/src/mcp/");
    nowhere(
        &sources("server/src", ".rs"),
        &["use rmcp", "rmcp::"],
        allowed,
        "rmcp is named only where MCP is served",
    );
}

#[test]
fn pages_put_no_text_in_as_markup() {
    let app: Vec<Source> = sources("app/src", ".rs");
    nowhere(
        &app,
        &["GetUrl", "GetCbor", "GetJson", "Rkyv", "MultipartFormData"],
        |_| false,
        "[A20] server functions take POST alone",
    );
    for source in &app {
        for (at, _) in source.product().match_indices("inner_html") {
            let text = source.product();
            let value = text[at..]
                .split_once('=')
                .map_or("", |(_, value)| value)
                .trim_start();
            // Our own drawings and style text are constants; anything that came from outside is not.
            let constant = value.starts_with('"')
                || value.starts_with(|c: char| c.is_uppercase())
                || value.starts_with("include_str!");
            assert!(
                constant || source.path == "app/src/parts/icon.rs",
                "[A27] {}: inner_html={}",
                source.path,
                &value[..value.len().min(40)]
            );
        }
    }
    for source in app.iter().filter(|source| source.text.contains("#[server")) {
        for (at, _) in source.text.match_indices("#[server") {
            let tag = &source.text[at..at + source.text[at..].find(']').unwrap()];
            assert!(
                tag.contains("prefix = \"/_fn\"") && tag.contains("input = Json"),
                "{}: {tag}",
                source.path
            );
        }
    }
}

/// Words of SQL that would make the same statement mean something else tomorrow, or on the other engine.
const NOT_IN_SQL: [&str; 16] = [
    "now()",
    "current_timestamp",
    "datetime(",
    "strftime(",
    "unixepoch(",
    "random()",
    "randomblob",
    "gen_random_uuid",
    "uuid_generate",
    "json_extract",
    "jsonb",
    "->>",
    "json_each",
    "::json",
    "clock_timestamp",
    "julianday",
];

#[test]
fn sql_takes_time_and_chance_as_arguments() {
    let mut all = sources("engine/src/store", ".rs");
    all.extend(sources("migrations", ".sql"));
    for source in &all {
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let plain = line.to_lowercase();
            let is_sql = source.path.ends_with(".sql") || plain.contains('"');
            let said_why = lines[at.saturating_sub(4)..=at]
                .iter()
                .any(|line| line.contains("Differs by necessity"));
            for word in NOT_IN_SQL {
                assert!(
                    !is_sql || !plain.contains(word) || said_why,
                    "{}:{}: {word}",
                    source.path,
                    at + 1
                );
            }
        }
    }
}

/// SHA-256 of each migration that was released. A new one is added here; a line is never changed.
const MIGRATIONS: &str = include_str!("../data/migrations.txt");

#[test]
fn migrations_are_plain_and_never_change() {
    let all = sources("migrations", ".sql");
    let mut seen = String::new();
    for source in &all {
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(source.text.as_bytes()));
        let name = source.path.trim_start_matches("migrations/");
        seen.push_str(&format!("{digest}  {name}\n"));
        // The index of the search is the one exception (migrations/README.md): FTS5 wants SQLite's own kind of key.
        let plain = name != "0015_search.sqlite.sql";
        for line in source
            .text
            .lines()
            .map(|line| line.split("--").next().unwrap().to_lowercase())
        {
            for kind in [
                "integer",
                "varchar",
                "timestamp",
                "boolean",
                "serial",
                "uuid",
                "bytea",
                "blob",
                " real",
                "numeric",
                "autoincrement",
                " json",
            ] {
                assert!(!plain || !line.contains(kind), "{}: {line}", source.path);
            }
        }
        for line in source.text.lines().filter(|line| {
            line.contains("create table")
                || line.contains("create index")
                || line.contains("create unique index")
        }) {
            assert!(!line.contains("if not exists"), "{}: {line}", source.path);
        }
    }
    assert_eq!(
        seen, MIGRATIONS,
        "a released migration changed, or a new one is not pinned in tests/data/migrations.txt"
    );
}

#[test]
fn files_fit_into_a_head() {
    let long: Vec<String> = [
        "domain/src",
        "engine/src",
        "app/src",
        "frontend/src",
        "server/src",
        "torture/src",
        "xtask/src",
    ]
    .iter()
    .flat_map(|folder| sources(folder, ".rs"))
    .filter(|source| !source.is_test())
    .map(|source| (source.product().lines().count(), source.path))
    .filter(|(lines, path)| {
        let grown = LONG_FILES.iter().find(|(known, _)| known == path);
        *lines > grown.map_or(LINES_MAX, |(_, lines)| *lines)
    })
    .map(|(lines, path)| format!("{path}: {lines} lines"))
    .collect();
    assert!(
        long.is_empty(),
        "files over {LINES_MAX} lines:\n{}",
        long.join("\n")
    );
}

const LINES_MAX: usize = 700;
/// Over the line already. A number here may only go down, and a line only away.
const LONG_FILES: [(&str, usize); 1] = [("engine/src/content/import.rs", 860)];
const FUNCTION_LINES_MAX: usize = 70;
const LONG_FUNCTIONS_PERCENT_MAX: usize = 5;

/// A ratchet, not a ban: what wants to be long may be, as long as it is rare.
#[test]
fn functions_fit_on_a_screen() {
    let all: Vec<Source> = [
        "domain/src",
        "engine/src",
        "app/src",
        "server/src",
        "torture/src",
        "xtask/src",
    ]
    .iter()
    .flat_map(|folder| sources(folder, ".rs"))
    .collect();
    let mut count = 0;
    let mut long = Vec::new();
    for source in &all {
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let plain = line.trim_start();
            let starts = [
                "fn ",
                "pub fn ",
                "async fn ",
                "pub async fn ",
                "pub(crate) fn ",
                "pub(crate) async fn ",
                "pub(super) fn ",
                "pub(super) async fn ",
            ];
            if !starts.iter().any(|start| plain.starts_with(start)) {
                continue;
            }
            let end = format!("{}}}", &line[..line.len() - plain.len()]);
            let length = lines[at..]
                .iter()
                .position(|line| *line == end)
                .map_or(1, |lines| lines + 1);
            count += 1;
            if length > FUNCTION_LINES_MAX {
                long.push(format!("{}:{}: {length} lines", source.path, at + 1));
            }
        }
    }
    assert!(count > 300, "only {count} functions were found");
    assert!(
        long.len() * 100 <= count * LONG_FUNCTIONS_PERCENT_MAX,
        "{} of {count} functions are long:\n{}",
        long.len(),
        long.join("\n")
    );
}

#[test]
fn every_style_file_is_served() {
    let assets = fs::read_to_string(root().join("server/src/assets.rs")).unwrap();
    let mut folders = vec![root().join("style")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root().join("style"))
                .unwrap()
                .to_string_lossy()
                .into_owned();
            let licence = name.starts_with("fonts/") && name.ends_with("-OFL.txt");
            let served = name == "live.css"
                || (name.starts_with("studio/") && name.ends_with(".css"))
                || (name.starts_with("fonts/") && name.ends_with(".woff2"));
            match path.is_dir() {
                true => folders.push(path),
                false => assert!(served || licence, "style/{name} is never served"),
            }
        }
    }
    for way in ["\"studio/\"", "\"live.css\"", "fonts/"] {
        assert!(assets.contains(way), "assets.rs serves no {way} any more");
    }
}

#[test]
fn the_map_stays_a_map() {
    let map = root().join("docs/ARCHITECTURE.md");
    if let Ok(text) = fs::read_to_string(&map) {
        let lines = text.lines().count();
        assert!(lines <= 200, "docs/ARCHITECTURE.md has {lines} lines");
        for member in ["domain", "engine", "app", "frontend", "server", "torture"] {
            assert!(text.contains(member), "the map does not name {member}");
        }
    }
}

/// What is named in a wall above is still there to be walled.
#[test]
fn the_walls_stand_around_something() {
    for path in [
        "engine/src/store.rs",
        "server/src/mcp.rs",
        "app/src/parts/icon.rs",
        "engine/src/store/migrate.rs",
    ] {
        assert!(Path::new(&root().join(path)).exists(), "{path}");
    }
    assert!(names("use sqlx::Row;", "sqlx") && !names("use my_sqlx;", "sqlx"));
    assert!(names("let x = rmcp::model();", "rmcp::") && !names("info,rmcp=warn", "rmcp::"));
}
