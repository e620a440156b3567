//! Texts by number: details repeat thousands of times.

use foldhash::HashMap;

/// Number 0 is the empty text.
pub(crate) struct Names {
    by_text: HashMap<String, u32>,
    texts: Vec<String>,
    /// Texts of parts are put together here.
    text: String,
}

impl Default for Names {
    fn default() -> Names {
        Names { by_text: HashMap::from_iter([(String::new(), 0)]), texts: vec![String::new()], text: String::new() }
    }
}

impl Names {
    pub fn of(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), number);
        number
    }

    /// The number of the parts' text, one after the other.
    pub fn of_parts(&mut self, parts: &[&str]) -> u32 {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        parts.iter().for_each(|part| text.push_str(part));
        let number = self.of(&text);
        self.text = text;
        number
    }

    /// All texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    pub fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }
}
