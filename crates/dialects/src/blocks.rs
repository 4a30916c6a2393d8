//! Output in order, one block at a time: what the dialects with content blocks or items stream.
//!
//! A text ends where a call begins. Of several calls the first streams and the others wait for the end, since events
//! do not say when a call is complete and those of one answer may come interleaved.

/// One step of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Open(usize),
    /// Further text or arguments of the open block.
    Delta(usize, String),
    Close(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Call { call_id: String, name: String },
}

/// A block with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub kind: Kind,
    /// Text, or arguments.
    pub content: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    /// Blocks that were opened; all but the last one are closed.
    opened: usize,
}

impl Blocks {
    pub fn get(&self, index: usize) -> Option<&Block> {
        self.blocks.get(index)
    }

    pub fn all(&self) -> &[Block] {
        &self.blocks
    }

    pub fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.kind, Kind::Call { .. }))
    }

    pub fn text(&mut self, delta: &str, steps: &mut Vec<Step>) {
        if !matches!(self.blocks.last(), Some(Block { kind: Kind::Text, .. })) {
            self.push(Kind::Text, steps);
        }
        self.append(self.blocks.len() - 1, delta, steps);
    }

    pub fn start(&mut self, call_id: &str, name: &str, steps: &mut Vec<Step>) {
        self.push(Kind::Call { call_id: call_id.to_owned(), name: name.to_owned() }, steps);
    }

    /// Arguments of a call that nobody began are dropped, as they are from an execution's result.
    pub fn arguments(&mut self, of: &str, delta: &str, steps: &mut Vec<Step>) {
        let begun = |block: &Block| matches!(&block.kind, Kind::Call { call_id, .. } if call_id == of);
        if let Some(index) = self.blocks.iter().rposition(begun) {
            self.append(index, delta, steps);
        }
    }

    /// Everything that was held back.
    pub fn end(&mut self, steps: &mut Vec<Step>) {
        while self.opened < self.blocks.len() {
            self.next(steps);
        }
        if let Some(last) = self.opened.checked_sub(1) {
            steps.push(Step::Close(last));
        }
    }

    fn push(&mut self, kind: Kind, steps: &mut Vec<Step>) {
        let streams = match self.opened.checked_sub(1) {
            None => true,
            Some(open) => open + 1 == self.blocks.len() && self.blocks[open].kind == Kind::Text,
        };
        self.blocks.push(Block { kind, content: String::new() });
        if streams {
            self.next(steps);
        }
    }

    /// Closes the open block and opens the one behind it, with what it holds already.
    fn next(&mut self, steps: &mut Vec<Step>) {
        if let Some(open) = self.opened.checked_sub(1) {
            steps.push(Step::Close(open));
        }
        let index = self.opened;
        self.opened += 1;
        steps.push(Step::Open(index));
        let content = &self.blocks[index].content;
        if !content.is_empty() {
            steps.push(Step::Delta(index, content.clone()));
        }
    }

    fn append(&mut self, index: usize, delta: &str, steps: &mut Vec<Step>) {
        self.blocks[index].content.push_str(delta);
        if index + 1 == self.opened && !delta.is_empty() {
            steps.push(Step::Delta(index, delta.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delta(index: usize, text: &str) -> Step {
        Step::Delta(index, text.to_owned())
    }

    #[test]
    fn a_text_streams_and_ends_where_a_call_begins() {
        let (mut blocks, mut steps) = (Blocks::default(), Vec::new());
        blocks.text("a", &mut steps);
        blocks.text("b", &mut steps);
        blocks.start("c1", "f", &mut steps);
        blocks.arguments("c1", "{", &mut steps);
        blocks.arguments("other", "x", &mut steps);
        blocks.end(&mut steps);
        let expected = [
            Step::Open(0),
            delta(0, "a"),
            delta(0, "b"),
            Step::Close(0),
            Step::Open(1),
            delta(1, "{"),
            Step::Close(1),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn what_comes_beside_a_call_waits_for_its_end() {
        let (mut blocks, mut steps) = (Blocks::default(), Vec::new());
        blocks.start("c1", "f", &mut steps);
        blocks.start("c2", "g", &mut steps);
        blocks.arguments("c2", "two", &mut steps);
        blocks.arguments("c1", "one", &mut steps);
        blocks.text("said", &mut steps);
        blocks.text(" late", &mut steps);
        assert_eq!(steps, [Step::Open(0), delta(0, "one")]);
        blocks.end(&mut steps);
        let rest = [
            Step::Close(0),
            Step::Open(1),
            delta(1, "two"),
            Step::Close(1),
            Step::Open(2),
            delta(2, "said late"),
            Step::Close(2),
        ];
        assert_eq!(steps[2..], rest);
    }

    #[test]
    fn nothing_gives_nothing() {
        let mut steps = Vec::new();
        Blocks::default().end(&mut steps);
        assert_eq!(steps, []);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Text(String),
        Start(u8),
        Arguments(u8, String),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let text = "[a-c]{0,3}";
        let op = prop_oneof![
            text.prop_map(Op::Text),
            (0_u8..4).prop_map(Op::Start),
            (0_u8..4, text).prop_map(|(call, text)| Op::Arguments(call, text)),
        ];
        proptest::collection::vec(op, 0..24)
    }

    proptest! {
        /// Whatever comes in whatever order: blocks open one behind the other, what streams is what they hold.
        #[test]
        fn blocks_stream_in_order_and_whole(ops in ops()) {
            let (mut blocks, mut steps) = (Blocks::default(), Vec::new());
            for op in &ops {
                match op {
                    Op::Text(text) => blocks.text(text, &mut steps),
                    Op::Start(call) => blocks.start(&call.to_string(), "f", &mut steps),
                    Op::Arguments(call, text) => blocks.arguments(&call.to_string(), text, &mut steps),
                }
            }
            blocks.end(&mut steps);
            let (mut streamed, mut open) = (Vec::<String>::new(), false);
            for step in &steps {
                match step {
                    Step::Open(index) => {
                        prop_assert!(!open && *index == streamed.len());
                        open = true;
                        streamed.push(String::new());
                    }
                    Step::Delta(index, text) => {
                        prop_assert!(open && index + 1 == streamed.len() && !text.is_empty());
                        streamed[*index].push_str(text);
                    }
                    Step::Close(index) => {
                        prop_assert!(open && index + 1 == streamed.len());
                        open = false;
                    }
                }
            }
            prop_assert!(!open);
            let held: Vec<&str> = blocks.all().iter().map(|block| block.content.as_str()).collect();
            prop_assert_eq!(held, streamed);
        }
    }
}
