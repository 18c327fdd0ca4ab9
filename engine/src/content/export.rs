//! A published site as static files that any web server serves.
//!
//! `a/b` becomes `a/b/index.html`, beside them `style.css` and `404.html`. Pages are rendered with a base of their own
//! ([`relative_base`]: `../..` for `a/b`), so that the folder works at the root of a host and below any path alike; the
//! one thing it needs of the server is to answer `a/b/` with the `index.html` inside. `404.html` is shown at addresses of
//! any depth, so it carries its style and no link.
//!
//! The target is a new or empty folder, or the work of an earlier export, told by its list of files in
//! `.cloudhal-export`. Files that are no longer part of the site are removed by that list; nothing else is ever removed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::slug::RESERVED;
use super::theme::{self, Style};

pub const MARKER: &str = ".cloudhal-export";
const MARKER_TITLE: &str = "Files of a Cloudhal export. A later export into this folder removes those that it no longer has.";

const SEGMENT_BYTES_MAX: usize = 200;

pub struct ExportPage {
    /// Without slashes at the ends; empty for the home page.
    pub path: String,
    /// A whole document, rendered with the base from [`relative_base`] and the style from [`relative_style`].
    pub html: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ExportReport {
    pub pages: usize,
    pub bytes: u64,
    /// Files of an earlier export that are gone now.
    pub removed: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{} is not empty and was not made by an export; choose another folder", .0.display())]
    NotEmpty(PathBuf),
    #[error("the page path {0:?} cannot be a folder of the export")]
    BadPath(String),
    #[error("two pages have the path {0:?}")]
    DuplicatePath(String),
    #[error("{} is a link or a file where a folder of the export should be", .0.display())]
    InTheWay(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The way from a page back to the site's root, without a slash at its end.
pub fn relative_base(path: &str) -> String {
    let depth = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .count();
    if depth == 0 {
        ".".to_string()
    } else {
        vec![".."; depth].join("/")
    }
}

pub fn relative_style(path: &str) -> String {
    format!("{}/style.css", relative_base(path))
}

pub fn write_site(
    out: &Path,
    site_title: &str,
    pages: impl Iterator<Item = ExportPage>,
) -> Result<ExportReport, ExportError> {
    let mut target = Target::open(out)?;
    let result = write_files(&mut target, site_title, pages);
    if result.is_err() {
        // What was written so far is ours to remove next time.
        target.earlier.extend(target.written.iter().cloned());
        target.write_marker(&target.earlier)?;
    }
    result
}

fn write_files(
    target: &mut Target,
    site_title: &str,
    pages: impl Iterator<Item = ExportPage>,
) -> Result<ExportReport, ExportError> {
    let mut count = 0;
    for page in pages {
        let file = file_of(&page.path)?;
        if target.written.contains(&file) {
            return Err(ExportError::DuplicatePath(page.path));
        }
        target.write(&file, page.html.as_bytes())?;
        count += 1;
    }
    target.write("style.css", theme::CSS.as_bytes())?;
    target.write(
        "404.html",
        theme::not_found(site_title, None, Style::Inline(theme::CSS)).as_bytes(),
    )?;
    let removed = target.remove_stale();
    target.write_marker(&target.written)?;
    Ok(ExportReport {
        pages: count,
        bytes: target.bytes,
        removed,
    })
}

fn file_of(path: &str) -> Result<String, ExportError> {
    if path.is_empty() {
        return Ok("index.html".to_string());
    }
    if !path.split('/').all(is_safe_segment) {
        return Err(ExportError::BadPath(path.to_string()));
    }
    Ok(format!("{path}/index.html"))
}

/// Looser than the rule for slugs, so that an older page still exports, but never more than one plain folder name.
fn is_safe_segment(segment: &str) -> bool {
    !segment.is_empty()
        && segment.len() <= SEGMENT_BYTES_MAX
        && !segment.starts_with('.')
        && !segment.contains(['/', '\\', ':'])
        && !segment.contains(char::is_control)
        && !RESERVED.contains(&segment.to_lowercase().as_str())
}

struct Target {
    root: PathBuf,
    earlier: BTreeSet<String>,
    written: BTreeSet<String>,
    bytes: u64,
}

impl Target {
    fn open(out: &Path) -> Result<Self, ExportError> {
        fs::create_dir_all(out).map_err(at(out))?;
        let root = fs::canonicalize(out).map_err(at(out))?;
        let earlier = match fs::read_to_string(root.join(MARKER)) {
            Ok(marker) => files_in(&marker),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at(&root.join(MARKER))(error));
            }
            Err(_) if fs::read_dir(&root).map_err(at(&root))?.next().is_some() => {
                return Err(ExportError::NotEmpty(root));
            }
            Err(_) => BTreeSet::new(),
        };
        let target = Self {
            root,
            earlier,
            written: BTreeSet::new(),
            bytes: 0,
        };
        // Before the first page: an export that breaks off can be repeated in the same folder.
        target.write_marker(&target.earlier)?;
        Ok(target)
    }

    fn write(&mut self, file: &str, content: &[u8]) -> Result<(), ExportError> {
        let path = self.root.join(file);
        if let Some((folder, _)) = file.rsplit_once('/') {
            self.make_folder(folder)?;
        }
        replace(&path, content)?;
        self.written.insert(file.to_string());
        self.bytes += content.len() as u64;
        Ok(())
    }

    /// One level at a time, because a link on the way would lead the files out of the target.
    fn make_folder(&self, folder: &str) -> Result<(), ExportError> {
        let mut path = self.root.clone();
        for segment in folder.split('/') {
            path.push(segment);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(ExportError::InTheWay(path)),
                Err(_) => fs::create_dir(&path).map_err(at(&path))?,
            }
        }
        Ok(())
    }

    fn remove_stale(&self) -> usize {
        let stale = self.earlier.difference(&self.written);
        stale
            .filter(|file| self.is_inside(file) && self.remove(file))
            .count()
    }

    /// The list is a file that somebody may have changed, so its paths are worth no more than a page's.
    fn is_inside(&self, file: &str) -> bool {
        let Some(folder) = file.strip_suffix("index.html") else {
            return false;
        };
        let folder = folder.trim_end_matches('/');
        let mut path = self.root.clone();
        folder.is_empty()
            || folder.split('/').all(|segment| {
                path.push(segment);
                is_safe_segment(segment)
                    && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir())
            })
    }

    fn remove(&self, file: &str) -> bool {
        let mut path = self.root.join(file);
        let removed = fs::remove_file(&path).is_ok();
        // Folders that became empty go too; the first one that still holds something ends it.
        while path.pop() && path != self.root && fs::remove_dir(&path).is_ok() {}
        removed
    }

    fn write_marker(&self, files: &BTreeSet<String>) -> Result<(), ExportError> {
        let mut marker = format!("# {MARKER_TITLE}\n");
        for file in files {
            marker.push_str(file);
            marker.push('\n');
        }
        replace(&self.root.join(MARKER), marker.as_bytes())
    }
}

fn files_in(marker: &str) -> BTreeSet<String> {
    marker
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_string)
        .collect()
}

/// By another name first, so that a server that is reading the folder never sees half a page.
fn replace(path: &Path, content: &[u8]) -> Result<(), ExportError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    // A link left under this name would be written through, so whatever stands there goes first.
    let _ = fs::remove_file(&temporary);
    fs::write(&temporary, content).map_err(at(&temporary))?;
    fs::rename(&temporary, path).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.to_path_buf();
    |source| ExportError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(paths: &[&str]) -> impl Iterator<Item = ExportPage> {
        let pages: Vec<_> = paths
            .iter()
            .map(|path| ExportPage {
                path: path.to_string(),
                html: format!("<p>{path}"),
            })
            .collect();
        pages.into_iter()
    }

    fn export(out: &Path, paths: &[&str]) -> Result<ExportReport, ExportError> {
        write_site(out, "Bakery", pages(paths))
    }

    #[test]
    fn pages_become_files() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/site");
        let report = export(&out, &["", "visit", "visit/hours"]).unwrap();
        assert_eq!((report.pages, report.removed), (3, 0));
        assert_eq!(
            fs::read_to_string(out.join("visit/hours/index.html")).unwrap(),
            "<p>visit/hours"
        );
        assert_eq!(
            fs::read_to_string(out.join("style.css")).unwrap(),
            theme::CSS
        );
        let missing = fs::read_to_string(out.join("404.html")).unwrap();
        assert!(
            missing.contains("Bakery")
                && !missing.contains("href=\"/")
                && !missing.contains("<link rel=\"stylesheet")
        );
    }

    #[test]
    fn an_export_replaces_an_earlier_one_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        export(dir.path(), &["", "old/deep", "kept"]).unwrap();
        fs::write(dir.path().join("kept/by-hand.txt"), "mine").unwrap();
        let report = export(dir.path(), &["", "new"]).unwrap();
        assert_eq!(report.removed, 2);
        assert!(
            !dir.path().join("old").exists(),
            "a folder that became empty goes too"
        );
        assert!(
            dir.path().join("kept/by-hand.txt").exists()
                && !dir.path().join("kept/index.html").exists()
        );
    }

    #[test]
    fn a_folder_of_someone_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        assert!(matches!(
            export(dir.path(), &[""]),
            Err(ExportError::NotEmpty(_))
        ));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn paths_cannot_leave_the_target() {
        let long = "a".repeat(300);
        for bad in [
            "..",
            "../x",
            "a/../../x",
            "/etc",
            "a//b",
            "a/",
            ".git",
            "a\\b",
            "c:",
            "a\0b",
            "style.css",
            "a/INDEX.html",
            &long,
        ] {
            let dir = tempfile::tempdir().unwrap();
            let out = dir.path().join("out");
            assert!(
                matches!(export(&out, &[bad]), Err(ExportError::BadPath(_))),
                "{bad:?}"
            );
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{bad:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            export(dir.path(), &["a", "a"]),
            Err(ExportError::DuplicatePath(_))
        ));
        assert_eq!(
            export(dir.path(), &["b"]).unwrap().removed,
            1,
            "what a failed export left is removed by the next"
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (out, elsewhere) = (dir.path().join("out"), dir.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        export(&out, &["", "a"]).unwrap();
        std::os::unix::fs::symlink(&elsewhere, out.join("b")).unwrap();
        assert!(matches!(
            export(&out, &["", "b/c"]),
            Err(ExportError::InTheWay(_))
        ));
        let page = out.join("a/index.html");
        fs::write(elsewhere.join("index.html"), "precious").unwrap();
        fs::remove_file(&page).unwrap();
        std::os::unix::fs::symlink(elsewhere.join("index.html"), &page).unwrap();
        export(&out, &["", "a"]).unwrap();
        assert_eq!(
            fs::read_to_string(elsewhere.join("index.html")).unwrap(),
            "precious"
        );
        assert_eq!(fs::read_to_string(&page).unwrap(), "<p>a");
        // A list that was tampered with removes nothing outside, or inside by a name that no export gives.
        fs::write(
            out.join(MARKER),
            "../elsewhere/index.html\nb/index.html\nnotes.txt\n",
        )
        .unwrap();
        fs::write(out.join("notes.txt"), "mine").unwrap();
        assert_eq!(export(&out, &[""]).unwrap().removed, 0);
        assert!(elsewhere.join("index.html").exists() && out.join("notes.txt").exists());
    }

    #[test]
    fn bases_lead_back_to_the_root() {
        for (path, base) in [
            ("", "."),
            ("a", ".."),
            ("a/b", "../.."),
            ("a/b/c", "../../.."),
        ] {
            assert_eq!(relative_base(path), base);
        }
        assert_eq!(relative_style("a/b"), "../../style.css");
    }
}
