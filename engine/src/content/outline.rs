//! Where each page of a site stands: what is above it, below it and beside it.
//!
//! Made once per site from its pages in order, then asked once per page; an answer costs as much as the navigation that
//! it prints, not as much as the site.

use std::collections::HashMap;

use super::theme::{Crumb, NavItem};

/// Up to this many siblings below the top level are listed in the side navigation; of more, those around the current
/// page. Without scripts nothing can scroll a long list to its middle, so the list has to be short enough to be seen.
const SIBLINGS_MAX: usize = 24;

pub struct Outline {
    entries: Vec<Entry>,
    by_path: HashMap<String, usize>,
    top: Vec<usize>,
}

struct Entry {
    path: String,
    title: String,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl Outline {
    /// Takes path and title of every page in order: parents before their children, siblings as they should be listed.
    /// The home page has the empty path. A page whose parent is missing stands at the top.
    pub fn new(pages: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut outline = Self {
            entries: Vec::new(),
            by_path: HashMap::new(),
            top: Vec::new(),
        };
        for (path, title) in pages {
            let at = outline.entries.len();
            let parent = outline.parent_of(&path);
            if outline.by_path.insert(path.clone(), at).is_some() {
                // The first of two pages at one path is the one that is served.
                outline.by_path.insert(
                    path.clone(),
                    outline
                        .entries
                        .iter()
                        .position(|e| e.path == path)
                        .unwrap_or(at),
                );
                continue;
            }
            match parent {
                Some(parent) => outline.entries[parent].children.push(at),
                None if path.is_empty() => {}
                None => outline.top.push(at),
            }
            outline.entries.push(Entry {
                path,
                title,
                parent,
                children: Vec::new(),
            });
        }
        outline
    }

    pub fn contains(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// The pages above, outermost first, without the home page and without the page itself.
    pub fn breadcrumbs(&self, path: &str) -> Vec<Crumb> {
        let mut crumbs: Vec<Crumb> = self
            .ancestors(path)
            .into_iter()
            .skip(1)
            .map(|at| self.crumb(at))
            .collect();
        crumbs.reverse();
        crumbs
    }

    /// The whole top level, opened along the way to the page and one level below it. A level in between shows the way
    /// alone, and a link to the rest.
    pub fn nav(&self, path: &str) -> Vec<NavItem> {
        self.level(&self.top, None, &self.ancestors(path), 0)
    }

    pub fn children(&self, path: &str) -> Vec<Crumb> {
        self.below(path).iter().map(|at| self.crumb(*at)).collect()
    }

    /// The siblings before and after.
    pub fn neighbours(&self, path: &str) -> (Option<Crumb>, Option<Crumb>) {
        let Some(at) = self.by_path.get(path).filter(|_| !path.is_empty()) else {
            return (None, None);
        };
        let siblings = self.entries[*at]
            .parent
            .map_or(&self.top, |parent| &self.entries[parent].children);
        let Some(place) = siblings.iter().position(|sibling| sibling == at) else {
            return (None, None);
        };
        let before = place.checked_sub(1).and_then(|before| siblings.get(before));
        (
            before.map(|at| self.crumb(*at)),
            siblings.get(place + 1).map(|at| self.crumb(*at)),
        )
    }

    fn parent_of(&self, path: &str) -> Option<usize> {
        self.by_path.get(path.rsplit_once('/')?.0).copied()
    }

    /// The page itself first, then upwards.
    fn ancestors(&self, path: &str) -> Vec<usize> {
        let start = self.by_path.get(path).copied();
        std::iter::successors(start, |at| self.entries[*at].parent).collect()
    }

    fn below(&self, path: &str) -> &[usize] {
        match self.by_path.get(path) {
            _ if path.is_empty() => &self.top,
            Some(at) => &self.entries[*at].children,
            None => &[],
        }
    }

    fn crumb(&self, at: usize) -> Crumb {
        Crumb {
            title: self.entries[at].title.clone(),
            path: self.entries[at].path.clone(),
        }
    }

    fn level(
        &self,
        siblings: &[usize],
        parent: Option<usize>,
        way: &[usize],
        depth: usize,
    ) -> Vec<NavItem> {
        // `way` runs upwards, so the entry of this level is counted from its end.
        let on_way = way.len().checked_sub(depth + 1).map(|at| way[at]);
        let is_passed = depth > 0 && depth + 1 < way.len();
        let shown = match depth {
            0 => siblings,
            _ => around(siblings, on_way, if is_passed { 1 } else { SIBLINGS_MAX }),
        };
        let mut items: Vec<NavItem> = shown
            .iter()
            .map(|at| self.item(*at, on_way, way, depth))
            .collect();
        if let Some(parent) = parent.filter(|_| shown.len() < siblings.len()) {
            let title = format!("All {} pages", siblings.len());
            items.push(NavItem {
                path: self.entries[parent].path.clone(),
                title,
                ..NavItem::default()
            });
        }
        items
    }

    fn item(&self, at: usize, on_way: Option<usize>, way: &[usize], depth: usize) -> NavItem {
        let entry = &self.entries[at];
        let open = on_way == Some(at);
        let children = if open {
            self.level(&entry.children, Some(at), way, depth + 1)
        } else {
            Vec::new()
        };
        NavItem {
            title: entry.title.clone(),
            path: entry.path.clone(),
            current: way.first() == Some(&at),
            open,
            children,
        }
    }
}

fn around(siblings: &[usize], current: Option<usize>, count: usize) -> &[usize] {
    if siblings.len() <= count {
        return siblings;
    }
    let place = siblings
        .iter()
        .position(|at| Some(*at) == current)
        .unwrap_or(0);
    let start = place.saturating_sub(count / 2).min(siblings.len() - count);
    &siblings[start..start + count]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(paths: &[&str]) -> Outline {
        Outline::new(
            paths
                .iter()
                .map(|path| (path.to_string(), format!("T {path}"))),
        )
    }

    fn paths(crumbs: &[Crumb]) -> Vec<&str> {
        crumbs.iter().map(|crumb| crumb.path.as_str()).collect()
    }

    const BAKERY: [&str; 7] = [
        "",
        "bread",
        "bread/rye",
        "bread/rye/dark",
        "bread/spelt",
        "visit",
        "orphan/below",
    ];

    #[test]
    fn a_page_knows_its_place() {
        let site = outline(&BAKERY);
        assert_eq!(
            paths(&site.breadcrumbs("bread/rye/dark")),
            ["bread", "bread/rye"]
        );
        assert!(site.breadcrumbs("").is_empty() && site.breadcrumbs("bread").is_empty());
        assert_eq!(
            paths(&site.children("")),
            ["bread", "visit", "orphan/below"],
            "a page without its parent is not lost"
        );
        assert_eq!(paths(&site.children("bread")), ["bread/rye", "bread/spelt"]);
        assert!(site.children("nowhere").is_empty());
        let (before, after) = site.neighbours("bread/spelt");
        assert_eq!(
            (before.map(|c| c.path), after),
            (Some("bread/rye".to_string()), None)
        );
        assert_eq!(site.neighbours(""), (None, None));
    }

    #[test]
    fn navigation_opens_the_way_to_the_page() {
        let nav = outline(&BAKERY).nav("bread/rye");
        assert_eq!(
            nav.iter().map(|item| item.open).collect::<Vec<_>>(),
            [true, false, false]
        );
        let rye = &nav[0].children[0];
        assert!(
            rye.current && rye.open && rye.children[0].path == "bread/rye/dark" && !nav[0].current
        );
        assert!(
            outline(&BAKERY)
                .nav("")
                .iter()
                .all(|item| !item.open && item.children.is_empty())
        );
    }

    #[test]
    fn a_level_on_the_way_shows_the_way_alone() {
        let nav = outline(&["a", "a/x", "a/y", "a/y/1", "a/y/2", "a/z", "b"]).nav("a/y/2");
        let titles: Vec<_> = nav[0]
            .children
            .iter()
            .map(|item| (item.title.as_str(), item.path.as_str()))
            .collect();
        assert_eq!(titles, [("T a/y", "a/y"), ("All 3 pages", "a")]);
        assert_eq!(nav[0].children[0].children.len(), 2);
    }

    #[test]
    fn a_long_level_is_cut_around_the_page() {
        let mut all = vec!["glossary".to_string()];
        all.extend((0..200).map(|n| format!("glossary/t{n:03}")));
        let site = Outline::new(all.into_iter().map(|path| (path.clone(), path)));
        for current in ["glossary/t000", "glossary/t100", "glossary/t199"] {
            let nav = site.nav(current);
            assert_eq!(nav[0].children.len(), SIBLINGS_MAX + 1);
            assert!(
                nav[0]
                    .children
                    .iter()
                    .any(|item| item.current && item.path == current)
            );
            assert_eq!(nav[0].children[SIBLINGS_MAX].title, "All 200 pages");
        }
        assert_eq!(site.children("glossary").len(), 200);
    }

    #[test]
    fn the_first_of_two_pages_at_one_path_stays() {
        let site = Outline::new([
            ("a".to_string(), "one".to_string()),
            ("a".to_string(), "two".to_string()),
        ]);
        assert_eq!(site.children("").len(), 1);
        assert_eq!(site.nav("a")[0].title, "one");
    }
}
