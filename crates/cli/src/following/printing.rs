//! What a follower sees of events: the text as it streams, or the events themselves.

use serde_json::value::RawValue;

use super::{Event, Target};
use crate::exit::Exit;
use crate::failure::Result;
use crate::render::Render;

/// Prints events one after the other.
#[derive(Debug)]
pub struct Printer {
    render: Render,
    ends_line: bool,
    any_text: bool,
    result: Option<Box<RawValue>>,
    outcome: Option<Result<Exit>>,
    /// Where the newest attempt went.
    asked: Option<Target>,
    /// Providers that were to be asked first; none named: whoever comes.
    wanted: Vec<String>,
}

impl Printer {
    pub fn new(render: Render) -> Printer {
        let wanted = Vec::new();
        Printer { render, ends_line: true, any_text: false, result: None, outcome: None, asked: None, wanted }
    }

    /// Says so when the first one that is asked is none of these: an order ranks, it excludes nobody.
    pub fn wanting(self, providers: &[String]) -> Printer {
        Printer { wanted: providers.to_vec(), ..self }
    }

    /// # Errors
    /// The text is no event, or nobody reads standard output any more.
    pub fn event(&mut self, json: String) -> Result<()> {
        let event = Event::parse(&json)?;
        self.outcome = event.outcome_of(self.asked.as_ref());
        if self.render.json {
            self.render.data(&(json + "\n"))?;
        } else if let Some(text) = event.text().filter(|text| !text.is_empty()) {
            self.render.foreign(text)?;
            self.ends_line = text.ends_with('\n');
            self.any_text = true;
        } else if event.result.is_some() {
            self.result = event.result;
        }
        if event.type_name == "route.selected" {
            if let (None, Some(target)) = (&self.asked, &event.target) {
                self.note_another(target);
            }
            self.asked = event.target;
        }
        Ok(())
    }

    fn note_another(&self, target: &Target) {
        if !self.wanted.is_empty() && !self.wanted.contains(&target.provider) {
            self.render.note(&format!(
                "no provider that --provider names can serve this; {} is asked",
                target.provider
            ));
        }
    }

    /// Ends the last line. `None`: the last event was not the terminal one.
    ///
    /// # Errors
    /// Nobody reads standard output any more.
    pub fn end(mut self) -> Result<Option<Result<Exit>>> {
        if let Some(result) = self.result.filter(|_| !self.any_text) {
            self.render.foreign(result.get())?;
            self.ends_line = false;
        }
        if !self.ends_line {
            self.render.data("\n")?;
        }
        Ok(self.outcome)
    }
}
