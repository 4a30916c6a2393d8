//! Calls of tools: an item announces one, fragments with the item's id follow, and its end repeats the whole.

use std::collections::{BTreeMap, VecDeque};

use sealog_execution::{Failure, ProviderEvent};

use crate::chunk::Item;

/// Most tool calls of one answer.
const CALLS_MAX: usize = 1024;

struct Call {
    call_id: String,
    /// Fragments came, so the whole at the end is a repetition.
    argued: bool,
}

pub struct ToolCalls {
    allowed: bool,
    calls: Vec<Call>,
    /// By the item's id and by the call's own: some upstreams give the item none.
    by_name: BTreeMap<String, usize>,
}

impl ToolCalls {
    pub fn new(allowed: bool) -> ToolCalls {
        ToolCalls { allowed, calls: Vec::new(), by_name: BTreeMap::new() }
    }

    /// Whether a call was begun.
    pub fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// An item was begun. Whatever is no call of a tool that the caller runs is passed over.
    pub fn added(&mut self, item: Option<Item>, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        let Some(item) = item.filter(is_call) else { return Ok(()) };
        if !self.allowed {
            return Err(Failure::protocol("Provider sent a tool call that was not declared"));
        }
        if self.calls.len() == CALLS_MAX {
            return Err(Failure::protocol("Provider sent too many tool calls"));
        }
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (Some(call_id), Some(name)) = (filled(item.call_id), filled(item.name)) else {
            return Err(Failure::protocol("Provider sent an incomplete tool call"));
        };
        let number = self.calls.len();
        let item_id = filled(item.id).unwrap_or_else(|| call_id.clone());
        let known = self.by_name.contains_key(&call_id) || self.by_name.contains_key(&item_id);
        if known {
            return Err(Failure::protocol("Provider used the id of a tool call twice"));
        }
        self.by_name.insert(call_id.clone(), number);
        self.by_name.insert(item_id, number);
        self.calls.push(Call { call_id: call_id.clone(), argued: false });
        out.push_back(ProviderEvent::ToolCallStarted { call_id, name });
        Ok(())
    }

    pub fn fragment(
        &mut self,
        item_id: Option<String>,
        delta: String,
        out: &mut VecDeque<ProviderEvent>,
    ) -> Result<(), Failure> {
        let call = self.call(item_id)?;
        if !delta.is_empty() {
            call.argued = true;
            out.push_back(ProviderEvent::ToolCallArgumentsDelta { call_id: call.call_id.clone(), delta });
        }
        Ok(())
    }

    /// The arguments are complete. Some upstreams send no fragments before.
    pub fn done(
        &mut self,
        item_id: Option<String>,
        whole: Option<String>,
        out: &mut VecDeque<ProviderEvent>,
    ) -> Result<(), Failure> {
        if self.call(item_id.clone())?.argued {
            return Ok(());
        }
        self.fragment(item_id, whole.unwrap_or_default(), out)
    }

    /// An item is complete.
    pub fn item_done(
        &mut self,
        item: Option<Item>,
        out: &mut VecDeque<ProviderEvent>,
    ) -> Result<(), Failure> {
        let Some(mut item) = item.filter(is_call) else { return Ok(()) };
        let (call_id, whole) = (item.call_id.clone(), item.arguments.take());
        if call_id.as_ref().is_none_or(|call_id| !self.by_name.contains_key(call_id)) {
            self.added(Some(item), out)?;
        }
        self.done(call_id, whole, out)
    }

    fn call(&mut self, name: Option<String>) -> Result<&mut Call, Failure> {
        let number = name.and_then(|name| self.by_name.get(&name));
        let call = number.and_then(|number| self.calls.get_mut(*number));
        call.ok_or(Failure::protocol("Provider continued a tool call that it did not begin"))
    }
}

fn is_call(item: &Item) -> bool {
    matches!(item.kind.as_deref(), Some("function_call" | "custom_tool_call"))
}
