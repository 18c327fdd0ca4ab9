//! The copy in which things are broken. It stays between runs, so that only what changed is built again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::table::Mutation;
use crate::run;

pub struct Tree {
    pub folder: PathBuf,
}

/// Files of the copy as they were.
#[must_use]
pub struct Broken(Vec<(PathBuf, String)>);

impl Tree {
    /// Brings the copy in step with the tree, as it is on disk and not as it was committed.
    pub fn copied(from: &Path, to: &Path) -> Result<Self> {
        let mut git = run::command("git");
        git.args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ]);
        let listed = run::output(&mut git).context("git could not list the tree's files")?;
        let mut files = BTreeSet::new();
        // The browser's tests are the larger half of the tree, and none of them is run here.
        let wanted = |file: &&str| !file.is_empty() && !file.starts_with("end2end/");
        for file in listed.split('\0').filter(wanted) {
            // Listed, and deleted since.
            let Ok(content) = fs::read(from.join(file)) else {
                continue;
            };
            run::write_if_changed(&to.join(file), &content)?;
            files.insert(to.join(file));
        }
        remove_others(to, &files)?;
        Ok(Self {
            folder: to.to_owned(),
        })
    }

    pub fn broken_by(&self, mutation: &Mutation) -> Result<Broken> {
        let mut before: Vec<(PathBuf, String)> = Vec::new();
        for change in mutation.changes {
            let path = self.folder.join(change.file);
            let text = fs::read_to_string(&path)
                .with_context(|| format!("could not read {}", path.display()))?;
            let found = text.matches(change.text).count();
            if found != 1 {
                bail!(
                    "{}: its text is in {} {found} times, not once",
                    mutation.name,
                    change.file
                );
            }
            let broken = text.replace(change.text, change.instead);
            fs::write(&path, broken)?;
            before.push((path, text));
        }
        Ok(Broken(before))
    }
}

impl Broken {
    pub fn mend(self) -> Result<()> {
        for (path, text) in self.0.into_iter().rev() {
            fs::write(&path, text)?;
        }
        Ok(())
    }
}

fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
