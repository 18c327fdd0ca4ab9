//! What a person may see: their own sites, and of others' agents what these do there.

use crate::support::*;
use cloudhal_engine::studio;

on_both! {
    somebody_elses_agent_shows_only_what_it_does_on_ones_own_sites,
}

async fn somebody_elses_agent_shows_only_what_it_does_on_ones_own_sites(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    let both = world
        .agent("both", &scene.ada, &[&scene.site, &florist])
        .await;
    let looker = world.member("looker", &florist, Role::Viewer).await;
    for site in [&scene.site, &florist] {
        both.call("publish", json!({"site": site})).await.pending();
    }
    let seen = studio::agents(world.engine(), looker.person())
        .await
        .unwrap();
    let [agent] = &seen.agents[..] else {
        panic!("{:?}", seen.agents);
    };
    assert_eq!(agent.name, "both");
    let titles: Vec<&str> = agent.sites.iter().map(|site| site.title.as_str()).collect();
    assert_eq!(titles, ["The florist"]);
    assert_eq!(agent.waiting, 1);
    assert!(agent.keys.is_empty());

    let own = studio::agents(world.engine(), scene.ada.person())
        .await
        .unwrap();
    let agent = own
        .agents
        .iter()
        .find(|agent| agent.name == "both")
        .unwrap();
    assert_eq!(
        (agent.sites.len(), agent.waiting, agent.keys.len()),
        (2, 2, 1)
    );
}
