//! The lists of requests that people read: each tab whole, a page at a time, in one order.

use crate::support::*;
use cloudhal_domain::view::{InboxRow, Tab};
use cloudhal_engine::{store::approvals::Filter, studio};
use std::collections::BTreeSet;

on_both! {
    every_tab_is_read_to_its_end_in_pages,
    filters_leave_what_fits_in_pages_without_loss,
}

async fn every_tab_is_read_to_its_end_in_pages(world: World) {
    let scene = world.scene().await;
    for round in 0..3 {
        let id = scene.asked().await;
        scene.ada.deny(&id, "No.").await.unwrap();
        world.advance(Duration::from_secs(1));
        let id = scene.asked().await;
        let withdrawn = json!({"approvalId": id});
        scene.bot.call("approvals-cancel", withdrawn).await.ok();
        let id = scene.approved().await;
        scene.edit(&format!("Text {round}.")).await;
        scene.redeem(&id).await.refused(Code::ApprovalVoided);
        let id = scene.approved().await;
        scene.redeem(&id).await.ok();
    }
    // Two that have run out: one is stored so, the other not yet.
    for stored in [true, false] {
        let delete = json!({"site": scene.site});
        scene.bot.call("delete", delete).await.pending();
        world.advance(HOUR * 25);
        if stored {
            background::sweep(world.engine()).await.unwrap();
        }
    }
    scene.approved().await;
    scene
        .bot
        .call("delete", json!({"site": scene.site}))
        .await
        .pending();

    let all = pages(&world, &Filter::default(), Tab::All).await;
    assert_eq!(all.len(), 16);
    let newest_first = |a: &InboxRow, b: &InboxRow| a.requested_at >= b.requested_at;
    assert!(all.is_sorted_by(newest_first));
    for (tab, count) in [
        (Tab::Waiting, 1),
        (Tab::Approved, 1),
        (Tab::Done, 3),
        (Tab::Denied, 3),
        (Tab::Voided, 6),
        (Tab::Expired, 2),
    ] {
        let found = pages(&world, &Filter::default(), tab).await;
        assert_eq!(found.len(), count, "{tab:?}");
        let expected: Vec<&InboxRow> = all
            .iter()
            .filter(|row| tab.statuses().contains(&row.status))
            .collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{tab:?}");
    }
    let query = Default::default();
    let inbox = studio::inbox(world.engine(), scene.ada.person(), query).await;
    let inbox = inbox.unwrap();
    assert_eq!((inbox.waiting, inbox.approved), (1, 1));
}

/// A tab's rows, two at a time.
async fn pages(world: &World, filter: &Filter, tab: Tab) -> Vec<InboxRow> {
    let mut found = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let page = studio::list(world.engine(), filter, tab, cursor.as_deref(), 2);
        let (rows, next) = page.await.unwrap();
        assert!(rows.len() <= 2);
        found.extend(rows);
        cursor = next;
        if cursor.is_none() {
            return found;
        }
    }
}

/// Four sites of which two had one slug after each other, two agents, and several requests of every end at the same moment.
async fn filters_leave_what_fits_in_pages_without_loss(world: World) {
    let scene = world.scene().await;
    let ben = world.person("ben").await;
    let brewery = world.site("brewery", &ben).await;
    let old_kiosk = world.site("kiosk", &ben).await;
    let both = [&scene.site, &brewery, &old_kiosk];
    let ada = scene.ada.person();
    for site in &both[1..] {
        sites::add_member(world.engine(), site, ada, Role::Owner)
            .await
            .unwrap();
    }
    let mole = world.agent("mole", &scene.ada, &both).await;
    let bot = world.agent("digger", &scene.ada, &both).await;
    for _ in 0..2 {
        for site in both {
            ask(&scene.ada, &[&mole, &bot], site).await;
        }
        world.advance(Duration::from_secs(1));
    }
    let gone = json!({"site": old_kiosk});
    ben.act("delete", gone).await.unwrap();
    let kiosk = world.site("kiosk", &ben).await;
    let heir = world.agent("heir", &ben, &[&kiosk]).await;
    ask(&ben, &[&heir], &kiosk).await;
    // What waits now runs out; of one site it is stored so.
    world.advance(HOUR * 25);
    let page = json!({"site": brewery, "title": "Malt", "slug": "malt"});
    bot.call("node-create", page).await.ok();
    for agent in [&mole, &bot] {
        let publish = json!({"site": scene.site});
        agent.call("publish", publish).await.pending();
    }

    let all = pages(&world, &Filter::default(), Tab::All).await;
    let stored = world.number("select count(*) from approvals").await;
    assert_eq!(all.len() as i64, stored);
    let ids: BTreeSet<&str> = all.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), all.len());
    let moments: BTreeSet<i64> = all.iter().map(|row| row.requested_at.ms()).collect();
    assert!(moments.len() * 4 < all.len(), "many at one moment");

    let id = brewery.as_str();
    let sites = ["", "bakery", "brewery", "kiosk", "nothing", id];
    let mut found = 0;
    for (site, tool, agent) in combined(&sites, &["", "publish"], &["", "mole", "heir"]) {
        for (text, person) in [
            ("", None),
            ("kiosk", None),
            ("", Some(&ben)),
            ("mole", Some(&ben)),
        ] {
            let filter = Filter {
                person: person.map(|one| one.person().id().as_str().to_owned()),
                site: site.to_owned(),
                tool: tool.to_owned(),
                agent: agent.to_owned(),
                text: text.to_owned(),
            };
            let fits = |row: &&InboxRow| {
                let said = format!("{} {}", row.sentence, row.asker).to_lowercase();
                let of_site = site == row.site_slug || (site == id && row.site_slug == "brewery");
                (site.is_empty() || of_site)
                    && (tool.is_empty() || tool == row.tool)
                    && (agent.is_empty() || agent == row.asker)
                    && said.contains(text)
                    && (person.is_none() || row.site_slug != "bakery")
            };
            for tab in Tab::ALL {
                let in_tab = |row: &&InboxRow| tab.statuses().contains(&row.status);
                let mut expected: Vec<&InboxRow> = all.iter().filter(fits).filter(in_tab).collect();
                if tab == Tab::Waiting {
                    expected.sort_by_key(|row| (row.expires_at, row.id.clone()));
                }
                let rows = pages(&world, &filter, tab).await;
                assert_eq!(
                    rows.iter().collect::<Vec<_>>(),
                    expected,
                    "{tab:?} {filter:?}"
                );
                found += rows.len();
            }
        }
    }
    assert!(found > 500, "the filters leave something: {found}");
}

/// One denied, one withdrawn, one voided, one executed and one that waits, of each agent on a site; all at one moment.
async fn ask(owner: &PersonClient, agents: &[&AgentClient], site: &SiteId) {
    let (publish, delete) = (json!({"site": site}), json!({"site": site}));
    for agent in agents {
        let id = agent.call("publish", publish.clone()).await.pending();
        owner.deny(&id.approval_id, "No.").await.unwrap();
        let id = agent.call("delete", delete.clone()).await.pending();
        let id = json!({"approvalId": id.approval_id});
        agent.call("approvals-cancel", id).await.ok();
        agent.call("delete", delete.clone()).await.pending();
        let id = agent.call("publish", publish.clone()).await.pending();
        let id = id.approval_id;
        owner.approve(&id).await.unwrap();
        agent.call_with(&id, "publish", publish.clone()).await.ok();
    }
    for agent in agents {
        agent.call("delete", delete.clone()).await.pending();
    }
}

fn combined<'t>(
    sites: &[&'t str],
    tools: &[&'t str],
    agents: &[&'t str],
) -> Vec<(&'t str, &'t str, &'t str)> {
    let mut out = Vec::new();
    for site in sites {
        for tool in tools {
            out.extend(agents.iter().map(|agent| (*site, *tool, *agent)));
        }
    }
    out
}
