//! The demo: a small bakery's site with a published version, one person, one agent. Everything in it goes through the same
//! functions as real content.

use crate::{
    Engine, agents,
    authority::Author,
    direct,
    people::{self, NewPerson},
    sites::{self, NewNode},
    store::sites as sites_sql,
};
use cloudhal_domain::{
    code::{Code, Refusal},
    origin::SameOrigin,
};
use serde_json::{Map, Value, json};

pub const SLUG: &str = "harbour-street-bakery";

/// What a newcomer needs to begin.
pub struct Demo {
    pub sign_in: String,
    pub agent_key: String,
}

/// Fills a fresh database; refuses any other. `proof` stands for the demo's own publish.
pub async fn fill(engine: &Engine, proof: SameOrigin) -> Result<Demo, Refusal> {
    if !people::is_empty(engine).await? {
        return Err(Refusal::new(
            Code::Conflict,
            "The demo needs a fresh database, and this one has people in it. Choose another CLOUDHAL_DATA_DIR, or serve without --demo.",
        ));
    }
    let ada = people::add(
        engine,
        NewPerson {
            email: "ada@example.com".into(),
            name: "Ada Osei".into(),
            workspace_owner: true,
            password: None,
        },
    )
    .await?;
    let site = sites::create_site(engine, SLUG, "Harbour Street Bakery", Some(&ada)).await?;
    sites::fill(engine, &site, Author::person(&ada), pages()).await?;
    let row = sites_sql::by_id(engine.store().read(), &site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    direct::act(
        engine,
        &ada,
        proof,
        "publish",
        json!({"site": site}),
        &row.state_hash,
    )
    .await?;
    let new = agents::NewAgent {
        name: "copy-editor".into(),
        sites: vec![site],
        tools: Vec::new(),
        expires_at: None,
    };
    let (_, agent_key) = agents::add(engine, &ada, new).await?;
    Ok(Demo {
        sign_in: people::sign_in_link(engine, &ada).await?,
        agent_key,
    })
}

macro_rules! page {
    ($path:literal, $kind:literal, $title:literal, $description:literal, $file:literal) => {
        (
            $path,
            $kind,
            $title,
            $description,
            include_str!(concat!("demo/", $file)),
        )
    };
}

const PAGES: &[(&str, &str, &str, &str, &str)] = &[
    page!(
        "",
        "page",
        "Home",
        "Bread from the harbour, since 1987",
        "home.md"
    ),
    page!(
        "bread",
        "collection",
        "Our bread",
        "What we bake, and when",
        "bread.md"
    ),
    page!(
        "bread/harbour-loaf",
        "entry",
        "Harbour loaf",
        "The one we started with",
        "harbour-loaf.md"
    ),
    page!(
        "bread/seeded-rye",
        "entry",
        "Seeded rye",
        "Dark, dense, keeps for a week",
        "seeded-rye.md"
    ),
    page!(
        "bread/cinnamon-knots",
        "entry",
        "Cinnamon knots",
        "Gone by ten, most days",
        "cinnamon-knots.md"
    ),
    page!(
        "visit",
        "collection",
        "Visit us",
        "Where we are and when we open",
        "visit.md"
    ),
    page!(
        "visit/opening-hours",
        "page",
        "Opening hours",
        "When the door is open",
        "opening-hours.md"
    ),
    page!(
        "visit/getting-here",
        "page",
        "Getting here",
        "By tram, by bike, on foot",
        "getting-here.md"
    ),
    page!(
        "orders",
        "page",
        "Orders and cakes",
        "How to order ahead",
        "orders.md"
    ),
    page!(
        "about",
        "page",
        "About us",
        "Three generations at one oven",
        "about.md"
    ),
];

fn pages() -> Vec<NewNode> {
    let node =
        |(at, (path, kind, title, description, body)): (usize, &(&str, &str, &str, &str, &str))| {
            NewNode {
                path: path.split('/').map(str::to_owned).collect(),
                kind: (*kind).to_owned(),
                title: (*title).to_owned(),
                position: (at as i64 + 1) * 10,
                body: body.trim_end().to_owned(),
                fields: Map::from_iter([("description".to_owned(), Value::from(*description))]),
            }
        };
    PAGES.iter().enumerate().map(node).collect()
}
