//! Text as words, one way for what is kept and for what is asked: without case, accents and punctuation. Scripts that leave no
//! space between words are split into their characters.

use std::ops::Range;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// What is longer is no word that anybody types; both sides are cut alike.
const WORD_CHARS_MAX: usize = 64;

/// A word and the bytes of the text that it stands for.
#[derive(Debug, PartialEq)]
pub struct Word {
    pub folded: String,
    pub at: Range<usize>,
}

pub fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut open = false;
    for (start, c) in text.char_indices() {
        if joins(c) {
            continue;
        }
        if !c.is_alphanumeric() {
            open = false;
            continue;
        }
        let at = start..start + c.len_utf8();
        for folded in fold(c) {
            let alone = stands_alone(folded);
            match found.last_mut() {
                Some(word) if open && !alone => {
                    word.at.end = at.end;
                    if word.folded.chars().count() < WORD_CHARS_MAX {
                        word.folded.push(folded);
                    }
                }
                _ => found.push(Word {
                    folded: folded.into(),
                    at: at.clone(),
                }),
            }
            open = !alone;
        }
    }
    found
}

fn fold(c: char) -> impl Iterator<Item = char> {
    let apart = c.to_lowercase().nfkd().flat_map(char::to_lowercase);
    apart
        .filter(|c| c.is_alphanumeric() && !is_combining_mark(*c))
        // The one letter whose small form depends on its place.
        .map(|c| if c == 'ς' { 'σ' } else { c })
}

/// Marks and what is not seen: they neither end a word nor are part of it.
fn joins(c: char) -> bool {
    is_combining_mark(c)
        || matches!(
            c,
            '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
        )
}

/// Scripts that are written without spaces.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'      // Thai, Lao
        | '\u{1000}'..='\u{109f}'    // Myanmar
        | '\u{1780}'..='\u{17ff}'    // Khmer
        | '\u{3005}'..='\u{30ff}'    // Japanese
        | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' // Han
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folded(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.folded).collect()
    }

    #[test]
    fn case_accents_and_punctuation_make_no_difference() {
        for (text, expected) in [
            ("Café Zürich", "cafe zurich"),
            ("cafe\u{301}", "cafe"),
            ("don't", "don t"),
            ("`foo_bar.baz()`", "foo bar baz"),
            ("https://example.org/a-b", "https example org a b"),
            ("ＦＵＬＬ ﬁne", "full fine"),
            ("İstanbul", "istanbul"),
            ("Σίσυφος ΣΊΣΥΦΟΣ", "σισυφοσ σισυφοσ"),
            ("ゟ ½", "よ り 12"),
            ("soft\u{ad}hyphen", "softhyphen"),
            ("営業時間 open", "営 業 時 間 open"),
            ("हिन्दी", "हनद"),
            ("C++ 3.14", "c 3 14"),
            ("!!! — …", ""),
        ] {
            assert_eq!(folded(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_word_names_the_bytes_it_stands_for() {
        let text = "Vor dem Café: geöffnet";
        let at: Vec<&str> = words(text).into_iter().map(|w| &text[w.at]).collect();
        assert_eq!(at, ["Vor", "dem", "Café", "geöffnet"]);
    }

    #[test]
    fn a_word_without_end_is_cut() {
        assert_eq!(folded(&"a".repeat(100_000)), ["a".repeat(WORD_CHARS_MAX)]);
    }

    proptest! {
        /// Else a word that is kept would not be found by itself.
        #[test]
        fn folding_twice_is_folding_once(text in "\\PC{0,40}") {
            let once = folded(&text);
            prop_assert_eq!(folded(&once.join(" ")), once);
        }
    }
}
