//! The command line, from outside: the binary that `cargo build` made, in an empty folder.

use crate::support::{
    binary::{Operator, call},
    *,
};
use std::{fs, os::unix::fs::PermissionsExt as _};

const SETTINGS: [&str; 8] = [
    "DATABASE_URL",
    "CLOUDHAL_DATA_DIR",
    "CLOUDHAL_ADDR",
    "CLOUDHAL_PUBLIC_URL",
    "CLOUDHAL_APPROVAL_TTL",
    "CLOUDHAL_LIVE_URL",
    "CLOUDHAL_SECRET_FILE",
    "CLOUDHAL_LOG",
];

/// [C29, C77]
#[test]
fn it_says_what_it_is_and_takes() {
    let operator = Operator::new();
    let version = operator.ok(&["--version"]).out;
    assert!(
        version.starts_with(&format!(
            "cloudhal {} (SQLite 3.",
            env!("CARGO_PKG_VERSION")
        )),
        "{version}"
    );
    let sqlite: Vec<u32> = version
        .split("SQLite ")
        .nth(1)
        .unwrap()
        .trim_end_matches([')', '\n'])
        .split('.')
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(sqlite >= vec![3, 51, 3], "[C77] {version}");
    let help = operator.ok(&["serve", "--help"]).out;
    for name in SETTINGS {
        let at = help
            .find(&format!("env: {name}"))
            .unwrap_or_else(|| panic!("{name} is not in {help}"));
        let start = help[..at]
            .rfind("\n      --")
            .or(help[..at].rfind("\n  -"))
            .unwrap_or(0);
        let whole = &help[start..help[at..].find("\n\n").map_or(help.len(), |end| at + end)];
        assert!(
            whole.contains("[default: "),
            "{name} has no default in: {whole}"
        );
    }
    assert!(
        !fs::exists(operator.path("data")).unwrap(),
        "asking makes nothing"
    );
    let all = operator.ok(&["--help"]).out;
    for command in [
        "serve", "person", "site", "agent", "verify", "journal", "backup", "restored",
    ] {
        assert!(
            all.contains(&format!("\n  {command} ")),
            "{command} is not in {all}"
        );
    }
    // [C29] None of them decides.
    for word in ["approve", "deny", "decide"] {
        operator.refused(&[word, "x"], "unrecognized subcommand");
    }
}

#[test]
fn a_bad_setting_stops_the_start_with_its_name() {
    let bad = [
        ("DATABASE_URL", "mysql://x/y"),
        ("DATABASE_URL", ""),
        ("DATABASE_URL", "sqlite:///proc/nowhere/cloudhal.db"),
        ("CLOUDHAL_DATA_DIR", "/proc/nowhere"),
        ("CLOUDHAL_ADDR", "localhost"),
        ("CLOUDHAL_ADDR", "127.0.0.1:99999"),
        ("CLOUDHAL_ADDR", "192.0.2.1:3000"),
        ("CLOUDHAL_PUBLIC_URL", "hal.example"),
        ("CLOUDHAL_PUBLIC_URL", "https://hal.example/studio"),
        ("CLOUDHAL_PUBLIC_URL", "https://user@hal.example"),
        ("CLOUDHAL_PUBLIC_URL", "file:///etc"),
        ("CLOUDHAL_APPROVAL_TTL", "soon"),
        ("CLOUDHAL_APPROVAL_TTL", "24"),
        ("CLOUDHAL_APPROVAL_TTL", "-1h"),
        ("CLOUDHAL_APPROVAL_TTL", "9999d"),
        ("CLOUDHAL_LIVE_URL", "pages"),
        ("CLOUDHAL_LIVE_URL", "http://127.0.0.1:3000"),
        ("CLOUDHAL_SECRET_FILE", "/proc/nowhere/secret"),
        ("CLOUDHAL_SECRET_FILE", "/dev/null"),
        ("CLOUDHAL_LOG", "a=b=c"),
    ];
    for (name, value) in bad {
        let operator = Operator::new().with(name, value);
        operator.refused(&["serve"], &format!("cloudhal: {name}: "));
        let secret = fs::exists(operator.path("data/secret")).unwrap();
        let late = ["DATABASE_URL", "CLOUDHAL_ADDR"].contains(&name);
        assert!(!secret || late, "{name}={value} left a secret behind");
    }
}

#[test]
fn flags_go_before_environment_before_file() {
    let operator = Operator::new();
    fs::write(operator.path("cloudhal.toml"), "approval_ttl = \"soon\"\n").unwrap();
    operator.refused(&["verify"], "CLOUDHAL_APPROVAL_TTL: “soon”");
    let operator = operator.with("CLOUDHAL_APPROVAL_TTL", "later");
    operator.refused(&["verify"], "CLOUDHAL_APPROVAL_TTL: “later”");
    operator.ok(&["person", "list", "--approval-ttl", "90m"]);
    for (text, words) in [
        ("aproval_ttl = \"24h\"\n", "aproval_ttl"),
        ("addr = 7\n", "addr"),
        ("= nonsense", "cloudhal.toml"),
    ] {
        fs::write(operator.path("cloudhal.toml"), text).unwrap();
        operator.refused(&["verify", "--approval-ttl", "90m"], words);
    }
    operator.refused(&["verify", "--config", "no-such.toml"], "no-such.toml");
}

#[test]
fn the_secret_is_its_owners_alone() {
    let operator = Operator::new();
    operator.ok(&["person", "list"]);
    let file = operator.path("data/secret");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let first = fs::read_to_string(&file).unwrap();
    assert_eq!(first.trim().len(), 64);
    operator.ok(&["verify"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    for broken in ["", "x", &first[1..], "zz"] {
        fs::write(&file, broken).unwrap();
        operator.refused(&["verify"], "CLOUDHAL_SECRET_FILE");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            broken,
            "it is not replaced"
        );
    }
}

#[test]
fn people_and_agents_are_added() {
    let operator = Operator::new();
    let added = operator.ok(&[
        "person",
        "add",
        "--email",
        "ada@example.com",
        "--name",
        "Ada",
        "--owner",
    ]);
    assert!(
        added
            .said("sign-in")
            .starts_with("http://127.0.0.1:3000/login/link/")
    );
    operator.refused(
        &[
            "person",
            "add",
            "--email",
            "ADA@example.com",
            "--name",
            "Ada",
        ],
        "already",
    );
    operator.refused(
        &["person", "add", "--email", "ada", "--name", "Ada"],
        "e-mail",
    );
    operator.refused(
        &[
            "person",
            "add",
            "--email",
            "x@example.com",
            "--name",
            "Eve\u{202e}",
        ],
        "name",
    );
    let add = [
        "person",
        "add",
        "--email",
        "pia@example.com",
        "--name",
        "Pia",
        "--password-stdin",
    ];
    let short = operator.run_with_input(&add, "short\n");
    assert!(
        !short.ok && short.err.contains("10 characters"),
        "{}",
        short.err
    );
    let good = operator.run_with_input(&add, "correct horse battery\n");
    assert!(good.ok && !good.out.contains("sign-in"), "{}", good.out);
    assert!(!good.out.contains("horse") && !good.err.contains("horse"));

    fs::create_dir(operator.path("pages")).unwrap();
    fs::write(operator.path("pages/index.md"), "# Hello\n").unwrap();
    operator.ok(&["site", "import", "pages", "--slug", "bakery"]);
    let agent = |owner: &str, site: &str, more: &[&str]| {
        let all = [
            "agent", "add", "--name", "bot", "--owner", owner, "--site", site,
        ];
        operator.run(&[&all[..], more].concat())
    };
    for (owner, site, more, words) in [
        ("eve@example.com", "bakery", &[][..], "--owner: nobody"),
        ("ada@example.com", "cinema", &[], "--site: there is no site"),
        (
            "ada@example.com",
            "bakery",
            &["--tool", "destroy"],
            "destroy",
        ),
        (
            "ada@example.com",
            "bakery",
            &["--tool", "update-collection-status"],
            "update-collection-status",
        ),
    ] {
        let ran = agent(owner, site, more);
        assert!(!ran.ok && ran.err.contains(words), "{}", ran.err);
    }
    let key = agent("ada@example.com", "bakery", &["--tool", "publish"]).said("agent-key");
    assert!(key.starts_with("clh_"), "{key}");
    let taken = agent("ada@example.com", "bakery", &[]);
    assert!(
        !taken.ok && taken.err.contains("cloudhal agent key"),
        "{}",
        taken.err
    );
    let further =
        |name: &str| operator.run(&["agent", "key", "--name", name, "--owner", "ada@example.com"]);
    let second = further("bot").said("agent-key");
    assert!(second.starts_with("clh_") && second != key, "{second}");
    let unknown = further("nobody");
    assert!(
        !unknown.ok && unknown.err.contains("no agent named nobody"),
        "{}",
        unknown.err
    );

    let link = |email: &str| operator.run(&["person", "link", "--email", email]);
    assert!(
        link("ada@example.com")
            .said("sign-in")
            .contains("/login/link/")
    );
    assert!(!link("eve@example.com").ok);
    let set = ["person", "password", "--email", "pia@example.com"];
    assert!(!operator.run_with_input(&set, "short\n").ok);
    let done = operator.run_with_input(&set, "another horse battery\n");
    assert!(done.ok && !done.out.contains("horse"), "{}", done.err);
    operator.ok(&["verify"]);
}

#[test]
fn what_only_looks_makes_no_database() {
    let data = tempfile::tempdir().unwrap();
    let nowhere = data.path().join("typing-error");
    let folder = nowhere.to_str().unwrap();
    let copy = data.path().join("copy.db");
    for command in [
        &["verify", "--data-dir", folder][..],
        &["backup", copy.to_str().unwrap(), "--data-dir", folder],
        &["restored", "--data-dir", folder],
        &["mcp", "--data-dir", folder],
        &["journal", "export", "--data-dir", folder],
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cloudhal"))
            .args(command)
            .env_remove("DATABASE_URL")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{command:?}");
        let named = said.contains("there is no database at") && said.contains(folder);
        assert!(named, "{command:?}: {said}");
        let made = ["cloudhal.db", "secret"].map(|name| nowhere.join(name).exists());
        assert!(made == [false, false] && !copy.exists(), "{command:?}");
    }
}

#[test]
fn people_and_agents_are_listed_and_stopped() {
    let operator = Operator::new();
    let add = |email: &str, name: &str, more: &[&str]| {
        let all = ["person", "add", "--email", email, "--name", name];
        operator.ok(&[&all[..], more].concat());
    };
    add("ada@example.com", "Ada", &["--owner"]);
    add("pia@example.com", "Pia", &[]);
    fs::create_dir(operator.path("pages")).unwrap();
    fs::write(operator.path("pages/index.md"), "# Hello\n").unwrap();
    operator.ok(&["site", "import", "pages", "--slug", "bakery"]);
    let agent = |owner: &str| {
        let all = [
            "agent", "add", "--name", "bot", "--site", "bakery", "--owner",
        ];
        operator.run(&[&all[..], &[owner]].concat())
    };
    let key = agent("ada@example.com").said("agent-key");
    // An agent works only where its owner does.
    let foreign = agent("pia@example.com");
    assert!(
        !foreign.ok && foreign.err.contains("Pia does not belong"),
        "{}",
        foreign.err
    );

    let listed = operator.ok(&["agent", "list"]).out;
    let shown = format!("bot\tAda\tbakery\t{}…", &key[..12]);
    assert!(listed.lines().any(|line| line == shown), "{listed}");
    assert!(!listed.contains(&key[31..]), "{listed}");

    let disable = |email: &str| operator.run(&["person", "disable", "--email", email]);
    let last = disable("ada@example.com");
    assert!(
        !last.ok && last.err.contains("nobody could manage"),
        "{}",
        last.err
    );
    assert!(disable("pia@example.com").ok);
    let people = operator.ok(&["person", "list"]).out;
    let lines: Vec<&str> = people.lines().collect();
    assert_eq!(
        lines,
        [
            "ada@example.com\tAda\towner\t-",
            "pia@example.com\tPia\t-\tdisabled"
        ]
    );
    operator.refused(&["person", "link", "--email", "pia@example.com"], "nobody");
    operator.ok(&["person", "enable", "--email", "pia@example.com"]);
    operator.ok(&["person", "link", "--email", "pia@example.com"]);
    assert!(!disable("nobody@example.com").ok);
    operator.ok(&["verify"]);
}

#[test]
fn a_folder_becomes_a_site_and_a_site_a_folder() {
    let operator = Operator::new();
    operator.ok(&[
        "person",
        "add",
        "--email",
        "ada@example.com",
        "--name",
        "Ada",
        "--owner",
    ]);
    let page = |name: &str, text: &[u8]| {
        let path = operator.path("pages").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    page(
        "index.md",
        b"---\ntitle: Our bakery\n---\n\nBread. See [hours](visit/hours.md).\n",
    );
    page(
        "visit/_index.md",
        b"---\ntitle: Visit\norder: 2\n---\n\nCome by.\n",
    );
    page("visit/hours.md", b"# Hours\n\nSeven to one.\n");
    page("broken.md", b"\xff\xfe not text \xff");
    page("front.md", b"---\ntitle: [unclosed\n---\n\nx\n");
    let imported = operator.ok(&["site", "import", "pages", "--slug", "bakery"]);
    assert!(imported.out.contains("“Our bakery”"), "{}", imported.out);
    for broken in ["broken.md", "front.md"] {
        let skipped = imported
            .out
            .lines()
            .find(|line| line.starts_with(&format!("skipped {broken}: ")));
        assert!(
            skipped.is_some_and(|line| line.len() > 20),
            "{}",
            imported.out
        );
    }
    operator.refused(&["site", "import", "pages", "--slug", "bakery"], "already");
    operator.refused(&["site", "import", "pages", "--slug", "No Slug"], "slug");
    operator.refused(&["site", "import", "nowhere", "--slug", "other"], "nowhere");
    fs::create_dir(operator.path("empty")).unwrap();
    operator.refused(&["site", "import", "empty", "--slug", "other"], "empty");
    operator.refused(&["site", "export", "nowhere", "--out", "x"], "no");
    operator.refused(&["site", "export", "bakery", "--out", "x"], "publish");
    assert!(!fs::exists(operator.path("x")).unwrap());
    operator.ok(&["verify"]);

    let demo = Operator::new();
    let serving = demo.serve(&["--demo"]);
    serving.stop();
    let exported = demo.ok(&["site", "export", "harbour-street-bakery", "--out", "site"]);
    assert!(exported.out.contains("10 pages"), "{}", exported.out);
    let home = fs::read_to_string(demo.path("site/index.html")).unwrap();
    assert!(
        home.contains("Harbour Street Bakery") && !home.contains("<script"),
        "{home}"
    );
    assert!(fs::exists(demo.path("site/bread/seeded-rye/index.html")).unwrap());
    demo.refused(
        &[
            "site",
            "export",
            "harbour-street-bakery",
            "--version",
            "9",
            "--out",
            "other",
        ],
        "version",
    );
}

#[test]
fn the_demo_needs_a_fresh_database() {
    let operator = Operator::new();
    operator.ok(&[
        "person",
        "add",
        "--email",
        "ada@example.com",
        "--name",
        "Ada",
    ]);
    let operator = operator.with("CLOUDHAL_ADDR", "127.0.0.1:0");
    operator.refused(&["serve", "--demo"], "fresh database");
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_names_the_place_that_was_tampered_with() {
    let operator = Operator::new();
    operator.serve(&["--demo"]).stop();
    let agreed = operator.ok(&["verify"]).out;
    assert!(
        agreed.starts_with("All agree: 1 sites, 2 journal chains."),
        "{agreed}"
    );
    operator.sql(&operator.database(), "select 1").await;
    let good = fs::read(operator.database()).unwrap();
    let free = "drop trigger journal_no_update; drop trigger journal_no_delete;";
    let tampering = [
        (
            "update nodes set rev = rev + 1 where slug = 'orders'".to_owned(),
            "harbour-street-bakery",
        ),
        (
            "delete from published; update sites set node_count = 3".to_owned(),
            "harbour-street-bakery",
        ),
        (
            "update sites set live_version = null".to_owned(),
            "harbour-street-bakery",
        ),
        (
            "update node_revisions set body = 'evil' where slug = 'orders'".to_owned(),
            "harbour-street-bakery",
        ),
        (
            "update sites set state_rev = state_rev + 1".to_owned(),
            "harbour-street-bakery",
        ),
        (
            format!("{free} update journal set actor_name = 'Eve' where seq = 2"),
            "journal",
        ),
        (
            format!(
                "{free} update journal set body = '{{}}' where chain = 'workspace' and seq = 1"
            ),
            "workspace",
        ),
        (
            format!("{free} delete from journal where chain = 'workspace' and seq = 1"),
            "workspace",
        ),
    ];
    for (statement, place) in tampering {
        fs::write(operator.database(), &good).unwrap();
        operator.sql(&operator.database(), &statement).await;
        operator.refused(&["verify"], "does not agree: ");
        let said = operator.run(&["verify"]).err;
        assert!(said.contains(place), "{statement}: {said}");
    }
    fs::write(operator.database(), &good).unwrap();
    operator.ok(&["verify"]);
}

#[test]
fn the_journal_is_lines_of_json() {
    let operator = Operator::new();
    operator.serve(&["--demo"]).stop();
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let out = operator
            .ok(&[&["journal", "export"], arguments].concat())
            .out;
        out.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let all = lines(&[]);
    for entry in &all {
        for name in [
            "chain",
            "seq",
            "at",
            "kind",
            "actor",
            "actorName",
            "body",
            "prevHash",
            "hash",
        ] {
            assert!(!entry[name].is_null(), "{name} is missing in {entry}");
        }
    }
    let kinds: Vec<&str> = all
        .iter()
        .map(|entry| entry["kind"].as_str().unwrap())
        .collect();
    for kind in [
        "person.added",
        "site.created",
        "site.imported",
        "tool.ran",
        "agent.added",
    ] {
        assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
    }
    let of_site = lines(&["--site", "harbour-street-bakery"]);
    assert!(!of_site.is_empty() && of_site.len() < all.len());
    for (at, entry) in of_site.iter().enumerate() {
        assert_eq!(entry["seq"], at + 1);
        assert_eq!(
            entry["prevHash"],
            if at == 0 {
                entry["prevHash"].clone()
            } else {
                of_site[at - 1]["hash"].clone()
            }
        );
    }
    assert!(lines(&["--since", "2999-01-01T00:00:00Z"]).is_empty());
    assert_eq!(lines(&["--since", "1999-01-01T00:00:00Z"]).len(), all.len());
    operator.refused(
        &["journal", "export", "--since", "yesterday"],
        "--since: “yesterday”",
    );
    operator.refused(
        &["journal", "export", "--site", "nowhere"],
        "--site: there is no site",
    );
}

/// [A19, R16] A copy made while serving is whole, and nothing that was asked before it opens anything in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_copy_redeems_nothing_older() {
    let operator = Operator::new();
    let serving = operator.serve(&["--demo"]);
    let (url, key) = (
        serving.url().to_owned(),
        serving.said("agent-key").to_owned(),
    );
    let sites = call(&url, &key, "site-list", json!({})).await.data();
    let site = sites["items"][0]["id"].clone();
    let publish = json!({"arguments": {"site": site}});
    let asked = call(&url, &key, "publish", publish.clone()).await;
    let id = asked.body["approvalId"].as_str().unwrap().to_owned();
    let said = operator.ok(&["backup", "copy.db"]).out;
    assert!(said.contains("copy.db"), "{said}");
    operator.refused(&["backup", "copy.db"], "never overwrites");
    // The original goes on.
    assert_eq!(
        call(&url, &key, "publish", publish).await.body["approvalId"],
        id.as_str()
    );
    serving.stop();
    operator.ok(&["verify"]);

    let copy = format!("sqlite://{}", operator.path("copy.db").display());
    let operator = operator.with("DATABASE_URL", &copy);
    operator.ok(&["verify"]);
    let serving = operator.serve(&[]);
    let seen = call(
        serving.url(),
        &key,
        "publish",
        json!({"arguments": {"site": site}, "approvalId": id}),
    )
    .await;
    assert_refused(&seen, Code::ApprovalVoided, "asked before the backup");
    assert_eq!(seen.details()["cause"], "restored");
    let seen = call(
        serving.url(),
        &key,
        "publish",
        json!({"arguments": {"site": site}}),
    )
    .await;
    assert_eq!(
        seen.status, 202,
        "and a new one can be asked: {}",
        seen.text
    );
    serving.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_not_touched() {
    let operator = Operator::new();
    operator.ok(&["person", "list"]);
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time) values (9999, 'later', 1, x'00', 1)";
    operator.sql(&operator.database(), newer).await;
    let before = fs::read(operator.database()).unwrap();
    for arguments in [
        &["serve"][..],
        &["verify"],
        &["person", "add", "--email", "a@example.com", "--name", "A"],
    ] {
        operator.refused(arguments, "newer Cloudhal");
    }
    assert_eq!(fs::read(operator.database()).unwrap(), before);
}
