//! Characters that a person would read wrongly or not at all: direction controls, invisible ones, tags, control
//! characters, and words that mix scripts which look alike. The page shows them as their code; it never drops them.

/// A stretch of text, as it should be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment<'t> {
    Plain(&'t str),
    /// One character that must not be rendered as itself.
    Odd(char),
    /// A word whose letters come from scripts that look alike.
    Mixed(&'t str),
    /// A part of a host name that stands for one in other letters, `xn--…`.
    Coded(&'t str),
}

/// `U+200B` for a character.
pub fn code_point(c: char) -> String {
    format!("U+{:04X}", c as u32)
}

/// Plain words for the commonest ones.
pub fn name(c: char) -> &'static str {
    match c as u32 {
        0x00AD => "soft hyphen",
        0x200B => "zero width space",
        0x200C => "zero width non-joiner",
        0x200D => "zero width joiner",
        0x2060 => "word joiner",
        0xFEFF => "byte order mark",
        0x061C | 0x200E | 0x200F | 0x202A..=0x202E | 0x2066..=0x2069 => {
            "changes the reading direction"
        }
        0xE0000..=0xE007F => "invisible tag character",
        0xFE00..=0xFE0F | 0xE0100..=0xE01EF => "variation selector",
        0x00..=0x1F | 0x7F..=0x9F => "control character",
        _ => "invisible character",
    }
}

/// Whether the character is shown as its code. Tab and line feed are ordinary; so is a joiner between the letters of a
/// script that needs it, and a variation selector or joiner inside an emoji.
pub fn is_odd(c: char) -> bool {
    match c as u32 {
        0x09 | 0x0A => false,
        0x00..=0x1F | 0x7F..=0x9F => true,
        0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F => true,
        0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F => true,
        0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB => true,
        0x1D173..=0x1D17A | 0xE0000..=0xE0FFF => true,
        0xE000..=0xF8FF | 0xF0000..=0x10FFFD => true,
        _ => false,
    }
}

/// Splits a text for showing.
pub fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut out = Vec::new();
    let mut plain = 0;
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if is_odd(c) && !is_at_home(before, c, rest.peek().map(|(_, c)| *c)) {
            words(&text[plain..at], &mut out);
            out.push(Segment::Odd(c));
            plain = at + c.len_utf8();
        }
        before = Some(c);
    }
    words(&text[plain..], &mut out);
    out
}

/// How many places of a text need a second look.
pub fn count(text: &str) -> usize {
    segments(text)
        .iter()
        .filter(|s| !matches!(s, Segment::Plain(_)))
        .count()
}

/// Joiners belong between letters of scripts that join (Arabic, Indic) and between emoji; selectors follow emoji.
fn is_at_home(before: Option<char>, c: char, after: Option<char>) -> bool {
    let joins = |c: char| matches!(c as u32, 0x0600..=0x08FF | 0x0900..=0x0DFF | 0x0E80..=0x109F | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC);
    let emoji = |c: char| {
        matches!(c as u32, 0x203C..=0x3299 | 0x1F000..=0x1FAFF)
            || matches!(c, '#' | '*' | '0'..='9' | '©' | '®')
    };
    match c as u32 {
        0x200C | 0x200D => {
            before.is_some_and(|b| joins(b) || emoji(b) || b == '\u{fe0f}')
                && after.is_some_and(|a| joins(a) || emoji(a))
        }
        0xFE0E | 0xFE0F => before.is_some_and(emoji),
        _ => false,
    }
}

fn words<'t>(text: &'t str, out: &mut Vec<Segment<'t>>) {
    let mut plain = 0;
    let mut start = None;
    let ends = text.char_indices().chain([(text.len(), ' ')]);
    for (at, c) in ends {
        if c.is_alphanumeric() {
            start.get_or_insert(at);
        } else if c == '-' && start.is_some_and(|from| is_coded(&text[from..])) {
            // A host name's part goes on through its hyphens.
        } else if let Some(from) = start.take()
            && let Some(marked) = marked(&text[from..at])
        {
            if plain < from {
                out.push(Segment::Plain(&text[plain..from]));
            }
            out.push(marked);
            plain = at;
        }
    }
    if plain < text.len() {
        out.push(Segment::Plain(&text[plain..]));
    }
}

fn marked(word: &str) -> Option<Segment<'_>> {
    if is_coded(word) && word.len() > 4 {
        Some(Segment::Coded(word))
    } else {
        mixes_scripts(word).then_some(Segment::Mixed(word))
    }
}

/// Punycode (RFC 3492), as a browser would undo it before it shows the address.
fn is_coded(word: &str) -> bool {
    word.get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
}

/// Latin beside Cyrillic, Greek, Armenian or Cherokee letters in one word.
fn mixes_scripts(word: &str) -> bool {
    let mut latin = false;
    let mut lookalike = false;
    for c in word.chars().filter(|c| c.is_alphabetic()) {
        match c as u32 {
            0x41..=0x5A | 0x61..=0x7A | 0xC0..=0x24F | 0x1E00..=0x1EFF => latin = true,
            0x370..=0x3FF if c != 'µ' => lookalike = true,
            0x400..=0x52F
            | 0x531..=0x587
            | 0x13A0..=0x13FF
            | 0x1F00..=0x1FFF
            | 0x1D400..=0x1D7FF
            | 0xFF21..=0xFF5A => lookalike = true,
            _ => {}
        }
    }
    latin && lookalike
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let seen: String = segments(text)
            .into_iter()
            .map(|s| match s {
                Segment::Plain(p) => p.to_string(),
                Segment::Odd(c) => format!("[{}]", code_point(c)),
                Segment::Mixed(w) => format!("<{w}>"),
                Segment::Coded(w) => format!("{{{w}}}"),
            })
            .collect();
        assert_eq!(seen, expect);
    }

    #[test]
    fn what_a_person_would_misread_is_marked() {
        check("a\u{200b}b", "a[U+200B]b");
        check("x\u{202e}gpj.exe", "x[U+202E]gpj.exe");
        check("\u{2066}a\u{2069}", "[U+2066]a[U+2069]");
        check("p\u{430}ypal.com", "<p\u{430}ypal>.com");
        check("https://xn--pple-43d.com/a", "https://{xn--pple-43d}.com/a");
        check("www.XN--e1awd7f.xn--p1ai", "www.{XN--e1awd7f}.{xn--p1ai}");
        check("hi\u{e0041}", "hi[U+E0041]");
        check("bell\u{7}", "bell[U+0007]");
        check("a\u{200d}b", "a[U+200D]b");
        check("\u{200b}", "[U+200B]");
    }

    #[test]
    fn what_is_legitimate_reads_as_it_is() {
        for text in [
            "Öffnungszeiten",
            "שלום עולם",
            "مرحبا بالعالم",
            "می\u{200c}خواهم",
            "Москва",
            "Ελλάδα",
            "👩\u{200d}🚀 ❤\u{fe0f}",
            "10 µm",
            "xn - xn-- a--b axn--b",
            "a\tb\nc",
            "",
        ] {
            check(text, text);
            assert_eq!(count(text), 0);
        }
    }
}
