//! Tool calls arrive in fragments, per choice and per position in the choice; each becomes one start, once its id
//! and name are known, and argument fragments after it.

use std::collections::{BTreeMap, BTreeSet};

use sealog_execution::{Failure, ProviderEvent};

use crate::chunk::{FunctionDelta, ToolCallDelta};

/// Most tool calls of one answer.
const CALLS_MAX: usize = 1024;

/// Most argument bytes kept back until a call can be announced.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Position(u32),
    /// The one call of the older form.
    Function,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    started: bool,
    /// Arguments that came before the call could be announced.
    kept: String,
}

pub struct ToolCalls {
    allowed: bool,
    calls: BTreeMap<(u32, Place), Call>,
    started_ids: BTreeSet<String>,
}

impl ToolCalls {
    pub fn new(allowed: bool) -> ToolCalls {
        ToolCalls { allowed, calls: BTreeMap::new(), started_ids: BTreeSet::new() }
    }

    pub fn fragment(
        &mut self,
        choice: u32,
        fragment: ToolCallDelta,
        out: &mut impl Extend<ProviderEvent>,
    ) -> Result<(), Failure> {
        let ToolCallDelta { index, id, function } = fragment;
        self.add(choice, Place::Position(index), id, function, out)
    }

    /// The older form has no id; the choice's number makes one, since a choice makes at most one such call.
    pub fn function(
        &mut self,
        choice: u32,
        function: FunctionDelta,
        out: &mut impl Extend<ProviderEvent>,
    ) -> Result<(), Failure> {
        self.add(choice, Place::Function, Some(format!("function-call-{choice}")), Some(function), out)
    }

    /// # Errors
    /// A call of the ended choice never got its id and name.
    pub fn finish(&self, choice: u32) -> Result<(), Failure> {
        let of_choice = self.calls.iter().filter(|((of, _), _)| *of == choice);
        if of_choice.into_iter().all(|(_, call)| call.started) {
            Ok(())
        } else {
            Err(Failure::protocol("Provider sent an incomplete tool call"))
        }
    }

    fn add(
        &mut self,
        choice: u32,
        place: Place,
        id: Option<String>,
        function: Option<FunctionDelta>,
        out: &mut impl Extend<ProviderEvent>,
    ) -> Result<(), Failure> {
        if !self.allowed {
            return Err(Failure::protocol("Provider sent a tool call that was not declared"));
        }
        if !self.calls.contains_key(&(choice, place)) && self.calls.len() == CALLS_MAX {
            return Err(Failure::protocol("Provider sent too many tool calls"));
        }
        let call = self.calls.entry((choice, place)).or_default();
        let (name, arguments) = function.map_or((None, None), |function| (function.name, function.arguments));
        // Some upstreams repeat id and name in every fragment; the first ones count.
        if call.id.is_empty() {
            call.id = id.unwrap_or_default();
        }
        if call.name.is_empty() {
            call.name = name.unwrap_or_default();
        }
        let arguments = arguments.unwrap_or_default();
        if !call.started && (call.id.is_empty() || call.name.is_empty()) {
            if call.kept.len() + arguments.len() > KEPT_BYTES_MAX {
                return Err(Failure::protocol("Provider sent an incomplete tool call"));
            }
            call.kept.push_str(&arguments);
            return Ok(());
        }
        let mut delta = arguments;
        if !call.started {
            if !self.started_ids.insert(call.id.clone()) {
                return Err(Failure::protocol("Provider used the id of a tool call twice"));
            }
            call.started = true;
            out.extend([ProviderEvent::ToolCallStarted {
                call_id: call.id.clone(),
                name: call.name.clone(),
            }]);
            delta.insert_str(0, &std::mem::take(&mut call.kept));
        }
        if !delta.is_empty() {
            out.extend([ProviderEvent::ToolCallArgumentsDelta { call_id: call.id.clone(), delta }]);
        }
        Ok(())
    }
}
