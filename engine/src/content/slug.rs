//! One segment of a page's path.
//!
//! **The rule**: 1 to 120 bytes of `a`–`z`, `0`–`9`, `-`, `_` and `.`; the first is a letter, a digit or `_`; the last is
//! not `.`; no two dots in a row; and not one of the file names that a static export needs for itself. ASCII alone,
//! because a path is read aloud, compared by eye on an approval card and typed on every keyboard.

use cloudhal_domain::limits::SLUG_BYTES_MAX;

/// Files that an export writes beside or inside a page's folder. A page of that name would be a folder in their place.
pub const RESERVED: [&str; 3] = ["index.html", "style.css", "404.html"];

pub fn is_slug(slug: &str) -> bool {
    slug.len() <= SLUG_BYTES_MAX
        && slug.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && slug.bytes().all(is_slug_byte)
        && !slug.ends_with('.')
        && !slug.contains("..")
        && !RESERVED.contains(&slug)
}

/// The nearest slug to a name. Equal names give equal slugs, also on another day and another machine.
pub fn slugify(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for c in name.chars() {
        push_folded(&mut slug, c);
    }
    let mut slug = trim(&slug).to_string();
    if slug.len() > SLUG_BYTES_MAX {
        // Only ASCII is left, so every byte is a boundary.
        slug.truncate(SLUG_BYTES_MAX);
        slug = trim(&slug).to_string();
    }
    if RESERVED.contains(&slug.as_str()) {
        slug = slug.replace('.', "-");
    }
    if slug.is_empty() {
        // A name without one Latin letter or digit. A checksum is stable where a counter would depend on its siblings.
        slug = format!("page-{:08x}", crc32fast::hash(name.as_bytes()));
    }
    slug
}

/// The same slug with a number behind it, still within the length limit: the way out of a collision.
pub fn numbered(slug: &str, number: usize) -> String {
    let suffix = format!("-{number}");
    let kept = slug.len().min(SLUG_BYTES_MAX - suffix.len());
    format!("{}{suffix}", &slug[..kept])
}

fn is_slug_byte(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.')
}

fn trim(slug: &str) -> &str {
    slug.trim_start_matches(['-', '.'])
        .trim_end_matches(['-', '.'])
}

fn push_folded(slug: &mut String, c: char) {
    match c {
        'A'..='Z' => slug.push(c.to_ascii_lowercase()),
        'a'..='z' | '0'..='9' | '_' => slug.push(c),
        '.' if slug.ends_with('.') => {}
        '.' => slug.push('.'),
        // Apostrophes join a word; a combining mark belongs to the letter before it.
        '\'' | '’' | '\u{300}'..='\u{36f}' => {}
        _ => match latin(c) {
            Some(letters) => slug.push_str(letters),
            None if slug.ends_with('-') => {}
            None => slug.push('-'),
        },
    }
}

/// Latin letters with marks as plain letters. Other scripts are not transliterated: a wrong guess is worse than none.
fn latin(c: char) -> Option<&'static str> {
    Some(match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'À'..='Å' | 'Ā' | 'Ă' | 'Ą' => "a",
        'æ' | 'Æ' => "ae",
        'ç' | 'ć' | 'č' | 'Ç' | 'Ć' | 'Č' => "c",
        'ď' | 'đ' | 'ð' | 'Ď' | 'Đ' | 'Ð' => "d",
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' | 'È'..='Ë' | 'Ē' | 'Ė' | 'Ę' | 'Ě' => "e",
        'ğ' | 'Ğ' => "g",
        'ì'..='ï' | 'ī' | 'į' | 'ı' | 'Ì'..='Ï' | 'Ī' | 'Į' | 'İ' => "i",
        'ł' | 'ľ' | 'Ł' | 'Ľ' => "l",
        'ñ' | 'ń' | 'ň' | 'Ñ' | 'Ń' | 'Ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ő' | 'Ò'..='Ö' | 'Ø' | 'Ō' | 'Ő' => "o",
        'œ' | 'Œ' => "oe",
        'ř' | 'Ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' | 'Ś' | 'Š' | 'Ş' | 'Ș' => "s",
        'ß' | 'ẞ' => "ss",
        'ť' | 'ț' | 'Ť' | 'Ț' => "t",
        'þ' | 'Þ' => "th",
        'ù'..='ü' | 'ū' | 'ů' | 'ű' | 'ų' | 'Ù'..='Ü' | 'Ū' | 'Ů' | 'Ű' | 'Ų' => "u",
        'ý' | 'ÿ' | 'Ý' | 'Ÿ' => "y",
        'ź' | 'ż' | 'ž' | 'Ź' | 'Ż' | 'Ž' => "z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_told_from_the_rest() {
        for good in [
            "a",
            "opening-hours",
            "_common",
            "v1.2",
            "404",
            "x-",
            "hugo_mod_tidy",
        ] {
            assert!(is_slug(good), "{good}");
        }
        let long = "a".repeat(121);
        for bad in [
            "",
            ".",
            "..",
            "-a",
            ".a",
            "a.",
            "a..b",
            "A",
            "ä",
            "a b",
            "a/b",
            "a\\b",
            "a\0",
            "index.html",
            &long,
        ] {
            assert!(!is_slug(bad), "{bad:?}");
        }
    }

    #[test]
    fn names_become_slugs() {
        for (name, slug) in [
            ("Opening Hours", "opening-hours"),
            ("Über uns — Straße", "uber-uns-strasse"),
            ("Crème brûlée", "creme-brulee"),
            ("cafe\u{301}", "cafe"),
            ("don't", "dont"),
            ("a  /  b", "a-b"),
            ("...", "page-95f0d39a"),
            ("v1..2", "v1.2"),
            ("-dash-", "dash"),
            ("style.css", "style-css"),
            ("_common", "_common"),
            ("日本 notes", "notes"),
        ] {
            if slug.starts_with("page-") {
                assert!(slugify(name).starts_with("page-"), "{name}");
            } else {
                assert_eq!(slugify(name), slug, "{name}");
            }
        }
        assert_ne!(
            slugify("日本"),
            slugify("中国"),
            "names in other scripts stay apart"
        );
    }

    #[test]
    fn whatever_goes_in_a_slug_comes_out() {
        let nasty = [
            "",
            "\0",
            "../../etc/passwd",
            "\u{202e}gpj",
            "%2e%2e",
            "👩‍👩‍👧",
            "CON",
            "a\nb",
            "İstanbul",
            "ſ",
            "K",
        ];
        for name in nasty
            .into_iter()
            .chain(std::iter::once("é-".repeat(500).as_str()))
        {
            assert!(is_slug(&slugify(name)), "{name:?} gave {:?}", slugify(name));
        }
        assert!(is_slug(&numbered(&"a".repeat(120), 1234)));
    }
}
