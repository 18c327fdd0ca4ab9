//! Finding a site's pages by their words. The index is kept with each revision and only proposes: what is told was found in the
//! text of the draft as it stands, so both engines answer alike, and an index that is behind never shows what is gone.

mod words;

use crate::{
    Engine,
    background::Failures,
    changes,
    sites::{LockedSite, invalid},
    store::{
        Fail, Tx,
        nodes::{self as nodes_sql, RevisionRow},
        search::{self as sql, Kept},
    },
};
use cloudhal_domain::{code::Refusal, id::SiteId, limits};
use serde_json::Value;
use std::ops::Range;
use words::{Word, words};

/// What is looked at, at most, to find enough that holds what was asked for.
const LOOKED_AT_MAX: usize = 1000;
/// Nodes that are looked up at once to have their words made again.
const CATCH_UP: i64 = 100;
const EXCERPT_BEFORE: usize = 60;
const EXCERPT_BYTES: usize = 240;

/// What somebody looks for: every term has to be there.
pub struct Query(Vec<Term>);

/// Words that follow one another. Of the last, its beginning is enough, except where the term was put in quotation marks.
struct Term {
    words: Vec<String>,
    exact: bool,
}

impl Query {
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let mut terms = Vec::new();
        // What stands in quotation marks is one term, what stands outside ends at each space.
        for (index, part) in text.split('"').enumerate() {
            let exact = index % 2 == 1;
            let pieces: Vec<&str> = match exact {
                true => vec![part],
                false => part.split_whitespace().collect(),
            };
            for piece in pieces {
                let words: Vec<String> = words(piece).into_iter().map(|w| w.folded).collect();
                if !words.is_empty() {
                    terms.push(Term { words, exact });
                }
            }
        }
        let count: usize = terms.iter().map(|term| term.words.len()).sum();
        match count {
            0 => Err(invalid("/query", "there is no word in it")),
            1..=limits::SEARCH_WORDS_MAX => Ok(Self(terms)),
            _ => Err(invalid(
                "/query",
                "it has too many words; name the few that matter",
            )),
        }
    }

    /// Each word once, and whether its beginning is enough: what the index is asked for.
    fn for_index(&self) -> Vec<(&str, bool)> {
        let mut asked: Vec<(&str, bool)> = self
            .0
            .iter()
            .flat_map(|term| {
                let last = term.words.len() - 1;
                let begins = move |index| index == last && !term.exact;
                term.words
                    .iter()
                    .enumerate()
                    .map(move |(index, word)| (word.as_str(), begins(index)))
            })
            .collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }
}

impl Term {
    /// Where it stands first.
    fn find(&self, text: &[Word]) -> Option<Range<usize>> {
        let (last, before) = self.words.split_last()?;
        let at = text.windows(self.words.len()).position(|window| {
            let (end, start) = window.split_last().expect("a term has a word");
            start
                .iter()
                .zip(before)
                .all(|(have, want)| have.folded == *want)
                && match self.exact {
                    true => end.folded == *last,
                    false => end.folded.starts_with(last.as_str()),
                }
        })?;
        Some(text[at].at.start..text[at + before.len()].at.end)
    }
}

/// A node that holds what was asked for.
pub struct Hit {
    pub node: RevisionRow,
    pub path: String,
    /// The text around the first term that stands below the title, on one line.
    pub excerpt: Option<String>,
}

pub struct Found {
    /// Best first; how close is close is the database's own measure, but a title counts for more than a text.
    pub hits: Vec<Hit>,
    /// There are others, or not all that might be were looked at.
    pub more: bool,
}

/// The nodes of a site's draft that hold every term.
pub async fn search(
    engine: &Engine,
    site: &SiteId,
    query: &Query,
    limit: usize,
) -> Result<Found, Refusal> {
    let (store, asked) = (engine.store(), query.for_index());
    let limit_of_looks = LOOKED_AT_MAX as i64 + 1;
    let ids = sql::candidates(store, site.as_str(), &asked, limit_of_looks).await?;
    let mut hits = Vec::new();
    for id in ids.iter().take(LOOKED_AT_MAX) {
        let Some(node) = nodes_sql::current(store.read(), site.as_str(), id).await? else {
            continue;
        };
        let Some(excerpt) = look(query, &node) else {
            continue;
        };
        if hits.len() == limit {
            return Ok(Found { hits, more: true });
        }
        let lineage = nodes_sql::lineage(store.read(), site.as_str(), id).await?;
        hits.push(Hit {
            node,
            path: changes::path_of(&lineage),
            excerpt,
        });
    }
    let more = ids.len() > LOOKED_AT_MAX;
    Ok(Found { hits, more })
}

/// Whether a node holds every term, and the excerpt if one is to be shown.
fn look(query: &Query, node: &RevisionRow) -> Option<Option<String>> {
    let fields = texts_of(&node.fields);
    let [title, body, others] = [&node.title, &node.body, &fields].map(|text| words(text));
    let mut shown = None;
    for term in &query.0 {
        let below = match term.find(&body) {
            Some(at) => Some((&node.body, at)),
            None => term.find(&others).map(|at| (&fields, at)),
        };
        match below {
            Some((text, at)) => {
                shown.get_or_insert_with(|| excerpt(text, at));
            }
            None => {
                term.find(&title)?;
            }
        }
    }
    Some(shown)
}

/// A stretch of the text around a place, cut between words where it can be.
fn excerpt(text: &str, at: Range<usize>) -> String {
    let mut from = text.floor_char_boundary(at.start.saturating_sub(EXCERPT_BEFORE));
    if from > 0
        && let Some(space) = text[from..at.start].find(char::is_whitespace)
    {
        from += space;
    }
    // One match may be as long as the text: it is cut like everything else.
    let mut to = text.floor_char_boundary((from + EXCERPT_BYTES).min(text.len()));
    if to < text.len()
        && let Some(after) = text.get(at.end..to)
        && let Some(space) = after.rfind(char::is_whitespace)
    {
        to = at.end + space;
    }
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    let pieces: Vec<&str> = text[from..to].split_whitespace().collect();
    shown.push_str(&pieces.join(" "));
    if to < text.len() {
        shown.push('…');
    }
    shown
}

/// The texts among a node's fields, a line each.
fn texts_of(fields: &str) -> String {
    let mut texts = String::new();
    if let Ok(fields) = serde_json::from_str(fields) {
        add_texts(&fields, &mut texts);
    }
    texts
}

fn add_texts(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, into)),
        Value::Object(map) => map.values().for_each(|item| add_texts(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Keeps the words of a revision in place of those of the one before; none, where it is the removal.
pub(crate) async fn keep(tx: &mut Tx, node: &RevisionRow) -> Result<(), Fail> {
    if node.removed == 1 {
        return Ok(sql::forget(tx, &node.node_id).await?);
    }
    let folded =
        |text: &str| -> Vec<String> { words(text).into_iter().map(|w| w.folded).collect() };
    let (body, fields) = (folded(&node.body), folded(&texts_of(&node.fields)));
    let kept = Kept {
        node: &node.node_id,
        site: &node.site_id,
        rev: node.rev,
        title: folded(&node.title),
        // Where not all has room, what somebody wrote about the page counts first.
        text: [fields, body].concat(),
    };
    Ok(sql::keep(tx, &kept).await?)
}

/// Makes the words of what was written before there was an index, or by a node of an older release. Any number of nodes may;
/// each page is a unit of its own, so that nobody waits for long.
pub async fn catch_up(engine: &Engine) -> Result<(), Refusal> {
    let (mut after, mut failures) = (String::new(), Failures::default());
    loop {
        let behind = sql::behind(engine.store().read(), &after, CATCH_UP).await?;
        let Some((last, _)) = behind.last() else {
            return failures.end();
        };
        after = last.clone();
        for (node, site) in behind {
            let of = node.clone();
            let unit = engine.store().write(move |tx| {
                Box::pin(async move {
                    LockedSite::lock(tx, &SiteId::new(&site)).await?;
                    match nodes_sql::current(tx.sql(), &site, &node).await? {
                        Some(now) => keep(tx, &now).await,
                        None => Ok(()),
                    }
                })
            });
            failures.note("the words of a page", &of, unit.await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(title: &str, body: &str) -> RevisionRow {
        RevisionRow {
            node_id: "n".into(),
            rev: 1,
            site_id: "s".into(),
            parent: String::new(),
            slug: "n".into(),
            kind: "page".into(),
            position: 0,
            title: title.into(),
            body: body.into(),
            fields: r#"{"tags":["Opening Hours"],"weight":3}"#.into(),
            hash: String::new(),
            removed: 0,
            state_rev: 1,
            created_at: 0,
            author: String::new(),
            author_name: String::new(),
        }
    }

    #[test]
    fn every_term_has_to_be_there() {
        let page = node(
            "Deployment of a site",
            "Copy the files,\nthen *restart* the service.",
        );
        for (query, found) in [
            ("deploy", true),
            ("DEPLOY restart", true),
            ("restart deploy", true),
            ("\"deploy\"", false),
            ("\"deployment of\"", true),
            ("\"of deployment\"", false),
            ("\"files then restart\"", true),
            ("restart absent", false),
            ("ployment", false),
            ("hours", true),
            ("\"opening hours\"", true),
            ("weight", false),
            ("\"unclosed restart", false),
            ("\"the service", true),
        ] {
            let query_ = Query::parse(query).expect("a query");
            assert_eq!(look(&query_, &page).is_some(), found, "{query}");
        }
    }

    #[test]
    fn an_excerpt_is_around_what_was_found_and_on_one_line() {
        let body = format!(
            "{} the needle\n\nstands {}",
            "before ".repeat(40),
            "after ".repeat(80)
        );
        let query = Query::parse("needle").expect("a query");
        let shown = look(&query, &node("T", &body))
            .flatten()
            .expect("an excerpt");
        assert!(
            shown.starts_with("…before ") && shown.ends_with(" after…"),
            "{shown}"
        );
        assert!(shown.contains("the needle stands after"), "{shown}");
        assert!(shown.len() < 260, "{shown}");
        let whole = look(&query, &node("T", "a needle"))
            .flatten()
            .expect("an excerpt");
        assert_eq!(whole, "a needle");
        assert_eq!(look(&query, &node("The needle", "")), Some(None));
        for endless in [
            "needle".repeat(40_000),
            format!("needle{}s", "\u{200b}".repeat(80_000)),
        ] {
            let shown = look(&query, &node("T", &endless))
                .flatten()
                .expect("an excerpt");
            assert!(shown.len() <= EXCERPT_BYTES + 6, "{}", shown.len());
        }
    }
}
