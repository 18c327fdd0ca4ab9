//! SQL for the words that nodes are found by. Differs by necessity throughout: SQLite keeps them in an FTS5 table, PostgreSQL in a
//! `tsvector`. Words come folded and split, letters and digits alone, so neither's own parser has a say.

use super::{Backend, Store, StoreError, Tx};
use sqlx::{AnyPool, Row as _};
use std::{collections::BTreeMap, fmt::Write as _};

/// The last place of a word that a `tsvector` can tell.
const POSITION_MAX: usize = 16_383;
/// A `tsvector` holds 1 MiB at most. The end of a page that is larger by far is not found there.
const VECTOR_BYTES_MAX: usize = 900_000;
/// Places it keeps of one word; they weigh in the order of what is found, and no more than that.
const POSITIONS_MAX: usize = 16;

/// The words of one revision.
pub struct Kept<'a> {
    pub node: &'a str,
    pub site: &'a str,
    pub rev: i64,
    pub title: Vec<String>,
    pub text: Vec<String>,
}

/// Takes the place of an older revision's words, never of a newer one's.
pub async fn keep(tx: &mut Tx, kept: &Kept<'_>) -> Result<(), StoreError> {
    match tx.backend() {
        Backend::Sqlite => {
            let row = sqlx::query(
                "insert into node_words (node_id, site_id, rev) values ($1, $2, $3)
                 on conflict (node_id) do update set rev = excluded.rev where node_words.rev < excluded.rev returning id",
            )
            .bind(kept.node)
            .bind(kept.site)
            .bind(kept.rev)
            .fetch_optional(tx.sql())
            .await?;
            let Some(row) = row else { return Ok(()) };
            sqlx::query(
                "insert or replace into node_index (rowid, site, title, text) values ($1, $2, $3, $4)",
            )
            .bind(row.try_get::<i64, _>(0)?)
            .bind(kept.site)
            .bind(kept.title.join(" "))
            .bind(kept.text.join(" "))
            .execute(tx.sql())
            .await?;
        }
        Backend::Postgres => {
            sqlx::query(
                "insert into node_words (node_id, site_id, rev, words) values ($1, $2, $3, cast($4 as tsvector))
                 on conflict (node_id) do update set rev = excluded.rev, words = excluded.words where node_words.rev < excluded.rev",
            )
            .bind(kept.node)
            .bind(kept.site)
            .bind(kept.rev)
            .bind(vector(&kept.title, &kept.text))
            .execute(tx.sql())
            .await?;
        }
    }
    Ok(())
}

/// `'word':1A,7`, as PostgreSQL reads it.
fn vector(title: &[String], text: &[String]) -> String {
    let mut places: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    let weighed = title.iter().map(|word| (word, "A"));
    let weighed = weighed.chain(text.iter().map(|word| (word, "")));
    let mut bytes = 0;
    for (index, (word, weight)) in weighed.enumerate() {
        // What PostgreSQL keeps of each: the word, the count of its places on an even byte, and two bytes a place.
        let places = places.entry(word).or_insert_with(|| {
            bytes += word.len() + 3;
            Vec::new()
        });
        if places.len() < POSITIONS_MAX {
            bytes += 2;
            places.push(((index + 1).min(POSITION_MAX), weight));
        }
        if bytes > VECTOR_BYTES_MAX {
            break;
        }
    }
    let mut vector = String::new();
    for (word, places) in places {
        let places: Vec<String> = places
            .into_iter()
            .map(|(place, weight)| format!("{place}{weight}"))
            .collect();
        // Writing to a String does not fail.
        let _ = write!(vector, "'{word}':{} ", places.join(","));
    }
    vector
}

pub async fn forget(tx: &mut Tx, node: &str) -> Result<(), StoreError> {
    if tx.backend() == Backend::Sqlite {
        sqlx::query(
            "delete from node_index where rowid = (select id from node_words where node_id = $1)",
        )
        .bind(node)
        .execute(tx.sql())
        .await?;
    }
    sqlx::query("delete from node_words where node_id = $1")
        .bind(node)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Ids of the draft's nodes that hold each word, or one that begins with it where its beginning is enough; best first.
pub async fn candidates(
    store: &Store,
    site: &str,
    asked: &[(&str, bool)],
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let (sql, matching) = match store.backend() {
        Backend::Sqlite => (
            // `cross` keeps the order: with nodes first, the index would be asked once for each of them.
            "select w.node_id from node_index i cross join node_words w on w.id = i.rowid
             cross join nodes n on n.id = w.node_id and n.site_id = $1 and n.deleted_at is null
             where node_index match $2 order by bm25(node_index, 0.0, 10.0, 1.0), w.node_id limit $3",
            fts5(site, asked),
        ),
        Backend::Postgres => (
            "select w.node_id from node_words w join nodes n on n.id = w.node_id and n.site_id = $1 and n.deleted_at is null
             where w.site_id = $1 and w.words @@ cast($2 as tsquery)
             order by ts_rank('{0.1, 0.2, 0.4, 1.0}', w.words, cast($2 as tsquery), 1) desc, w.node_id limit $3",
            tsquery(asked),
        ),
    };
    Ok(sqlx::query_scalar(sql)
        .bind(site)
        .bind(matching)
        .bind(limit)
        .fetch_all(store.read())
        .await?)
}

fn fts5(site: &str, asked: &[(&str, bool)]) -> String {
    let mut query = format!("site : \"{site}\"");
    for (word, begins) in asked {
        let star = if *begins { " *" } else { "" };
        // Writing to a String does not fail.
        let _ = write!(query, " AND {{title text}} : \"{word}\"{star}");
    }
    query
}

fn tsquery(asked: &[(&str, bool)]) -> String {
    let terms: Vec<String> = asked
        .iter()
        .map(|(word, begins)| format!("'{word}'{}", if *begins { ":*" } else { "" }))
        .collect();
    terms.join(" & ")
}

/// Nodes of drafts whose words are those of an older revision, or are not kept at all, with their sites; by id, after one.
pub async fn behind(
    pool: &AnyPool,
    after: &str,
    limit: i64,
) -> Result<Vec<(String, String)>, StoreError> {
    let sql = "select n.id, n.site_id from nodes n join sites s on s.id = n.site_id and s.deleted_at is null
        left join node_words w on w.node_id = n.id
        where n.id > $1 and n.deleted_at is null and (w.rev is null or w.rev < n.rev) order by n.id limit $2";
    Ok(sqlx::query_as(sql)
        .bind(after)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}
